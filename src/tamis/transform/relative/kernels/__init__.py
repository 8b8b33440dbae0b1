"""The kernels of the relative strategy, in the order in which a document meets them.

``events`` finds out what is inside what; ``climbing`` follows the NFA's occurrences back to the
bound nodes, past the tests of steps; ``values`` finds the leaves that strings make true; ``hits``
brings both together: what is true of which bound node; ``rules`` finds the selections that follow;
``answers`` writes them down. ``tables`` has the hash tables of all.
"""
