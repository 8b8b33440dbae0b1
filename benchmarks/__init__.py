"""Measurements, side by side in one run, with the answers verified equal."""
