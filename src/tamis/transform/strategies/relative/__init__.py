"""The default strategy: relative paths are matched once, whatever they are relative to."""
