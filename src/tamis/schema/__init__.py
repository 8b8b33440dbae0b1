"""What a DTD permits: its declarations, and the graph of elements inside elements."""
