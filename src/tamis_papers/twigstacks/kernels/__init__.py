"""The paper's kernel, compiled."""
