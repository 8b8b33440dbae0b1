"""Kernels about strings.

``events`` has what is inside what; ``values`` the strings of nodes, and what they make true;
``tables`` the hash tables.
"""
