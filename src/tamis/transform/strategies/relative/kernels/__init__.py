"""The kernels of the relative strategy, in the order in which a document meets them.

``climbing`` follows the NFA's occurrences back to the bound nodes, past the tests of steps;
``hits`` has what is true of which bound node; ``rules`` finds the selections that follow;
``answers`` writes them down. What strings are, and make true, is in ``strings``.
"""
