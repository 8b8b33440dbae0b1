"""The default engine: an automaton that is determinised while it matches."""
