"""Subscriptions that transform: a FLWR expression within constant elements.

``parse_transformation`` reads one (``reader.py``: clauses, on ``constructors.py``: elements, on
``characters.py``), and says what it means in the terms of ``model.py``.
"""

from tamis.language.flwr.model import Transformation
from tamis.language.flwr.reader import parse_transformation

__all__ = ["Transformation", "parse_transformation"]
