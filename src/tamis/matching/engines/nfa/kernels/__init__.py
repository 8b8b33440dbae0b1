"""Adds filters to the NFA (``building``), runs it over events (``running``), lists path-tuples."""
