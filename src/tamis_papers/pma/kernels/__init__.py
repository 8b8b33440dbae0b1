"""What builds pattern-matching automata, and what matches documents with them."""
