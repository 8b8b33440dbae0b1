"""What all parts stand on: kernels."""
