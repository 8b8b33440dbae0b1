"""The kernels of the relative strategy."""
