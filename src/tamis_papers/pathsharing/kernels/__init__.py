"""The kernels of the paper's plans.

``tuples`` makes the streams of path-tuples; ``selecting``, ``searching``, ``joining``, ``sharing``
and ``grouping`` are the operators; ``running`` runs them, and writes down what they found.
"""
