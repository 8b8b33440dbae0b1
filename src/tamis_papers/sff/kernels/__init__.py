"""What Numba compiles: ``building`` the index, and ``matching`` events with it."""
