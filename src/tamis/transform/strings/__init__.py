"""What strategies share: the strings of a document's nodes, and the constants that they meet."""
