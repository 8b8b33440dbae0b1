"""The graph schema of a DTD as facts, for programs."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.core.limits import DEFAULT_LIMITS
from tamis.schema.dtd import AttributeType
from tamis.schema.graph import SchemaGraph

_RECURSIVE_STEPS = 10  # what paths of recursive DTDs are counted to


def facts(graph: SchemaGraph) -> dict[str, object]:
    """All that the outline tells, and the declarations, for JSON.

    The children of an element are those that its content model names, with how often they may
    occur: once (``""``), ``?``, ``*`` or ``+``. ``ANY`` content names none.

    >>> from tamis.schema.reader import parse_dtd
    >>> found = facts(SchemaGraph.of(parse_dtd("<!ELEMENT a (b+)> <!ELEMENT b EMPTY>")))
    >>> found["roots"], found["paths"], found["elements"]["a"]["children"]
    (['a'], {'count': 2, 'steps': 2}, {'b': '+'})
    """
    count, steps = count_paths(graph)
    return {
        "roots": list(graph.roots),
        "depth": graph.depth,
        "paths": {"count": count, "steps": steps},
        "cycles": [list(cycle) for cycle in graph.cycles],
        "impossible": list(impossible(graph)),
        "unreachable": list(unreachable(graph)),
        "undeclared": list(graph.undeclared),
        "missing": list(graph.dtd.missing),
        "elements": {
            name: {
                "kind": element.kind.value,
                "model": None if element.model is None else str(element.model),
                "children": {child: occurs.value for child, occurs in element.occurrences.items()},
                "attributes": {a.name: _of_attribute(a) for a in element.attributes},
                "height": graph.height(name),
            }
            for name, element in graph.dtd.elements.items()
        },
    }


def count_paths(graph: SchemaGraph) -> tuple[int, int]:
    """How many paths there are of at most how many steps: all, if the DTD is not recursive.

    Steps beyond what documents may have by default are never counted: the number of such paths
    could have more digits than Python prints.
    """
    depth = _RECURSIVE_STEPS if graph.depth is None else graph.depth
    steps = min(depth, DEFAULT_LIMITS.depth)
    return graph.path_count(steps), steps


def _of_attribute(attribute: AttributeType) -> dict[str, object]:
    return {
        "kind": attribute.kind.value,
        "presence": attribute.presence.value,
        "values": list(attribute.values),
        "default": attribute.default,
    }


def impossible(graph: SchemaGraph) -> Iterator[str]:
    """The elements that can never be complete."""
    return (name for name in graph.dtd.elements if graph.height(name) is None)


def unreachable(graph: SchemaGraph) -> Iterator[str]:
    """The elements that no root leads to."""
    reachable = frozenset(graph.reachable)
    return (name for name in graph.dtd.elements if name not in reachable)
