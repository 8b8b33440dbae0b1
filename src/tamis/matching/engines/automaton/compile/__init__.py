"""From queries to a program; ``compile_queries`` in ``queries.py`` is the entry point."""
