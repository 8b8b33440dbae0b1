"""Reads plain expressions from bytes: a stack machine, without look-back but for ``or``.

``expressions.read`` goes from one expression to the next; ``words`` writes what is read, with its
literals; ``text`` reads names and keeps every string once. Each function begins where the last one
stopped (``POSITION``) and returns what is to be expected next. That ``a or b`` begins with a group
is known when ``or`` comes: the words since are moved by one.

Nothing is said about what is wrong: it is declined, like all that is not plain.
"""
