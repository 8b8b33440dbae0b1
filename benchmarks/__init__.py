"""Declared measurements: programs side by side in one run, their answers verified equal."""
