"""Query set → Program → MatchSet."""
