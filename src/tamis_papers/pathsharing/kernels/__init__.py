"""The kernels of the paper's plans.

``join`` makes the streams of path-tuples and joins them; ``select`` has selections; ``group`` has
groups and searches; ``run`` runs all operators, and writes down what they found.
"""
