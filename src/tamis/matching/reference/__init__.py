"""The reference engine: XPath's semantics, a set of nodes at a time. See README.md."""

from tamis.matching.reference.compile import compile_queries
from tamis.matching.reference.evaluate import Evaluator, match, open_reference
from tamis.matching.reference.nodes import build_nodes
from tamis.matching.reference.sets import Rows

__all__ = ["Evaluator", "Rows", "build_nodes", "compile_queries", "match", "open_reference"]
