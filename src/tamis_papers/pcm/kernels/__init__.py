"""PCM, compiled."""
