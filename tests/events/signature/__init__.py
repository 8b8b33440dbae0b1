"""The default engine: what its layout makes special."""
