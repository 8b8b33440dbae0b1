"""The graph schema of a DTD as text, for people."""

from __future__ import annotations

import math
import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tamis.schema.dtd import ContentKind, ElementType, Occurs
from tamis.schema.facts import count_paths, impossible, unreachable
from tamis.schema.graph import SchemaGraph

_WIDTH = 100
_OUTLINE_LEVELS = 40  # the indent of deeper ones would be most of the text


def describe(graph: SchemaGraph) -> str:
    r"""What there is to know of the graph, and a tree of its elements.

    The tree shows what an element contains once, in the first of its shallowest places; elsewhere
    it says in which element that is.

    >>> from tamis.schema.reader import parse_dtd
    >>> print(describe(SchemaGraph.of(parse_dtd('''
    ...     <!ELEMENT book (title, section*)>   <!ELEMENT title (#PCDATA)>
    ...     <!ELEMENT section (title, (section | para)*)>   <!ELEMENT para (#PCDATA)>'''))))
    root: book
    elements: 4, of which 1 recursive
    depth: without end
    paths: 27 of at most 10 steps
    cycle: section
    <BLANKLINE>
    book
    ├─ title: text
    └─ section*
       ├─ title: text
       ├─ section*: as in book
       └─ para*: text
    """
    return "\n".join([*_summary(graph), "", *_outline(graph)])


def _summary(graph: SchemaGraph) -> Iterator[str]:
    recursive = sum(map(len, graph.cycles))
    count, steps = count_paths(graph)
    yield from _names("root" if len(graph.roots) == 1 else "roots", graph.roots)
    yield f"elements: {len(graph.dtd.elements):,}, of which {recursive or 'none'} recursive"
    yield f"depth: {'without end' if graph.depth is None else graph.depth}"
    bound = "" if steps == graph.depth else f" of at most {steps:,} steps"
    yield f"paths: {_rounded(count)}{bound}"
    for cycle in graph.cycles:
        yield from _names("cycle", cycle)
    yield from _names("impossible, as they can never be complete", impossible(graph))
    yield from _names("unreachable from a root", unreachable(graph))
    yield from _names("not declared", graph.undeclared)
    yield from _names("files that were not found", graph.dtd.missing)


def _names(title: str, names: Iterable[str]) -> list[str]:
    text = " ".join(names)
    if not text:
        return []
    return textwrap.wrap(
        f"{title}: {text}",
        _WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _rounded(count: int) -> str:
    r"""A number that people can read.

    >>> _rounded(1234567), _rounded(7**100)
    ('1,234,567', 'about 10^85')
    """
    return f"{count:,}" if count < 10**15 else f"about 10^{round(math.log10(count))}"


def _outline(graph: SchemaGraph) -> Iterator[str]:
    homes = _homes(graph)
    held: dict[str | None, list[str]] = {}
    for child, home in homes.items():
        held.setdefault(home, []).append(child)
    waiting: list[tuple[str, str | None, str]] = [
        (root + _content(graph.dtd.elements[root]), root, "") for root in reversed(graph.roots)
    ]
    while waiting:
        line, shown, indent = waiting.pop()
        yield line
        parts = [] if shown is None else list(_parts(graph, shown, homes, held.get(shown, [])))
        if parts and len(indent) >= 3 * _OUTLINE_LEVELS:
            yield f"{indent}└─ …"
            continue
        for index, (text, name) in reversed(list(enumerate(parts))):
            is_last = index == len(parts) - 1
            branch, below = ("└─", "   ") if is_last else ("├─", "│  ")
            waiting.append((f"{indent}{branch} {text}", name, indent + below))


def _homes(graph: SchemaGraph) -> dict[str, str | None]:
    """The element that each is shown in, with all that it contains; None is for roots.

    What content models lead to has its place there; ``ANY`` content has the rest.
    """
    homes: dict[str, str | None] = dict.fromkeys(graph.roots)
    waiting = deque(graph.roots)
    with_any: deque[str] = deque()
    while waiting or with_any:
        name = waiting.popleft() if waiting else with_any.popleft()
        if waiting and graph.dtd.elements[name].kind is ContentKind.ANY:
            with_any.append(name)
            continue
        for child in graph.children(name):
            if child not in homes:
                homes[child] = name
                waiting.append(child)
    return homes


def _parts(
    graph: SchemaGraph, name: str, homes: Mapping[str, str | None], held: Sequence[str]
) -> Iterator[tuple[str, str | None]]:
    """What is shown below an element: the texts, and the elements whose own parts are shown too.

    Below one with ``ANY`` content, these are ``held``: the elements that have no place elsewhere.
    """
    element = graph.dtd.elements[name]
    children: Iterable[tuple[str, Occurs]] = element.occurrences.items()
    if element.kind is ContentKind.ANY:
        children = ((child, Occurs.ZERO_OR_MORE) for child in held)
    for child, occurs in children:
        text = child + occurs.value
        if child not in graph.dtd.elements:
            yield f"{text}: not declared", None
        elif homes[child] == name:
            yield text + _content(graph.dtd.elements[child]), child
        elif not graph.children(child):
            yield text + _content(graph.dtd.elements[child]), None
        else:
            yield f"{text}: {'a root' if homes[child] is None else f'as in {homes[child]}'}", None


_CONTENT = {
    ContentKind.EMPTY: ": empty",
    ContentKind.ANY: ": any element",
    ContentKind.MIXED: ": text",
    ContentKind.CHILDREN: "",
}


def _content(element: ElementType) -> str:
    return _CONTENT[element.kind]
