"""Seeded generators of documents and subscriptions: the same bytes for the same seed, everywhere."""
