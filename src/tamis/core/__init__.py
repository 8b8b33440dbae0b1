"""What all parts stand on: kernels, limits and errors; and automata of strings (``automata``)."""
