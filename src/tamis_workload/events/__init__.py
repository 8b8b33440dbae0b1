"""Filters of attribute–value events, and the events."""
