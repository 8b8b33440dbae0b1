"""Transforming subscriptions: which nodes of a message they ask for, and what is made of them.

Start with ``transformer.py``, a live set, and ``snapshot.py``, which takes documents.
``planner.py`` has strategies find nodes; ``factory.py`` makes messages of these, with what
``templates.py`` says is constant in them. ``shapes.py`` says what kernels can answer.
``layout.py``, ``kernels/strings.py`` and ``constants.py`` are what strategies with kernels share.
"""
