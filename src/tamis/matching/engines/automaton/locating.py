"""For which queries the automaton knows where the nodes are that they select."""

from __future__ import annotations

from tamis.language.model import DESCEND, HERE, Axis, Exists, Query, Step

_KNOWN = (Axis.CHILD, Axis.DESCENDANT, Axis.ATTRIBUTE)


def locates(query: Query) -> bool:
    """Whether a query is among the answers of a state wherever it selects what is met there.

    Those are paths without predicates: of twigs only their truth is known, and ``boolean()`` of a
    path selects nothing.

    >>> from tamis.language.xpath import parse
    >>> [locates(parse(text)) for text in ("//a/@b | /c//text()", "//a[b]", "boolean(//a)")]
    [True, False, False]
    """
    match query.expression:
        case Exists(paths) if query.selects:
            return all(_is_plain(step) for path in paths for step in path.steps)
    return False


def _is_plain(step: Step) -> bool:
    return step in (HERE, DESCEND) or (step.axis in _KNOWN and not step.predicates)
