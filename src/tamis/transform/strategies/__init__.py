"""The algorithms that find what messages are made of; ``tamis.transform.planner`` chooses one.

Start with ``reference.py``, which says what is right; ``relative`` is the default, with a README.
"""
