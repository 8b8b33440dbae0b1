"""What all parts stand on: kernels, limits, errors; and automata of strings (``nfa``, ``automata``)."""
