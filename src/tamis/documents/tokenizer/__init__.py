"""The fast way from bytes to a DocumentBatch; README.md says how it works."""
