"""The fast path: a Numba tokenizer of UTF-8."""
