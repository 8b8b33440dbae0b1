"""Kernels that all engines of events share."""
