"""Subscription text → Query. Knows no engine.

Start with ``model``, what a query is, and ``xpath``, which makes one of a text: ``grammar`` reads
it, ``analyzer`` gives it its meaning, ``equivalents`` finds what to write instead of what is
refused, and ``printer`` writes it. ``subscriptions`` are sets of them: ``entries`` reads ids and
expressions, ``queries`` parses them, and ``plain`` does both by kernels in large sets. ``flwr`` has
the language of transformations, ``filters`` the linear paths that engines share. Of events,
``constraints`` has the model, ``events`` reads expressions, ``conjunctions`` makes filters of them,
and ``attributes`` says what names mean; ``regex`` has patterns of strings, which ``regexparser``
reads and ``characters`` has the classes of.
"""
