"""XML bytes → DocumentBatch."""
