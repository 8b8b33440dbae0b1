"""Kernels of the engine ``signature``."""
