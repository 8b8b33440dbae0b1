"""Seeded generators of documents and subscriptions: one seed, the same bytes everywhere."""
