"""Subscription text → Query. Knows no engine."""
