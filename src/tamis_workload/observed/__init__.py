"""Subscriptions drawn from documents: from their paths, names and values."""
