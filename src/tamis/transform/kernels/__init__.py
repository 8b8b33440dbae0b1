"""Kernels of transformations: strings that strategies compare, and the writing of messages."""
