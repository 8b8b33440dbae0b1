"""What a DTD permits: its declarations, and the graph of elements inside elements.

``reader`` makes a ``dtd`` of files, by ``tokens``; ``graph`` is made of that. With the graph,
``prune`` and ``twigs`` simplify queries, and ``describe`` shows it. Begin with ``dtd``.
"""
