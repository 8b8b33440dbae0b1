"""The algorithms that answer queries; ``tamis.matching.planner`` chooses among them.

``automaton`` is the default, ``reference`` the oracle, ``nfa`` YFilter's engine; ``stacks``
evaluates all twigs at once; ``lxml`` is for XPath outside the streamed fragment. Each folder's
README or ``__init__`` is where to start.
"""
