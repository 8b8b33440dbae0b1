"""The broker paper's strategies."""
