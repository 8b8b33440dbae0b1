"""Packages that stand on Tamis, or beside it."""
