"""The reference engine: XPath's semantics, a set of nodes at a time. See README.md."""

from tamis.matching.reference.compile import compile_queries, demand_of
from tamis.matching.reference.evaluate import Evaluator, match
from tamis.matching.reference.nodes import build_nodes

__all__ = ["Evaluator", "build_nodes", "compile_queries", "demand_of", "match"]
