"""What documents and events share: sets of matches, engines, and how one is chosen."""
