"""The engines of events: ``reference`` says what a match is; ``signature`` is the default."""
