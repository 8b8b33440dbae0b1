"""XML bytes → EventBatch."""
