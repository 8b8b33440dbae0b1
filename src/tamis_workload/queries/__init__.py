"""Path queries and twigs drawn from a DTD."""
