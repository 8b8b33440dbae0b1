"""Tests of what all parts stand on."""
