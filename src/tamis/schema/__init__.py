"""What a DTD permits: its declarations, and the graph of elements inside elements.

``reader`` makes a ``dtd`` of files, by ``tokens``; ``graph`` is made of that. ``prune`` and ``twigs``
simplify queries with it, ``describe`` shows it. Begin with ``dtd``.
"""
