"""Reads plain expressions from bytes: a stack machine, without look-back but for ``or``.

``read`` goes from one expression to the next; ``expressions`` has what stands between operators,
``steps`` what stands between slashes, ``literals`` the rest, ``tables`` keeps everything once. Each
function begins where the last one stopped (``POSITION``) and returns what is to be expected next.
That ``a or b`` begins with a group is known when ``or`` comes: the words since are moved by one.

Nothing is said about what is wrong: it is declined, like all that is not plain.
"""
