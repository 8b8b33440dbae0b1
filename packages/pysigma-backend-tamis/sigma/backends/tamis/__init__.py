"""The Tamis backend of pySigma."""

from .tamis import TamisBackend

__all__ = ["TamisBackend", "backends"]

backends = {"tamis": TamisBackend}
