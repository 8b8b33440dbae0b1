"""The graph schema of a DTD shown: as facts for programs, as text for people, as a drawing."""

from __future__ import annotations

import math
import shutil
import subprocess
import textwrap
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tamis.core.errors import UsageError
from tamis.core.limits import DEFAULT_LIMITS
from tamis.schema.dtd import ContentKind, Occurs
from tamis.schema.graph import SchemaGraph

_RECURSIVE_STEPS = 10  # what paths of recursive DTDs are counted to
_WRAPPER = textwrap.TextWrapper(
    100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
)
_OUTLINE_LEVELS = 40  # the indent of deeper ones would be most of the text
_LAYERED_EDGES = 500  # a real DTD of 731 edges took more than 25 s, one of 659 took 1.2 s
_SECONDS_MAX = 300


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
                "attributes": {
                    each.name: {
                        "kind": each.kind.value,
                        "presence": each.presence.value,
                        "values": list(each.values),
                        "default": each.default,
                    }
                    for each in element.attributes
                },
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


def impossible(graph: SchemaGraph) -> Iterator[str]:
    """The elements that can never be complete."""
    return (name for name in graph.dtd.elements if graph.height(name) is None)


def unreachable(graph: SchemaGraph) -> Iterator[str]:
    """The elements that no root leads to."""
    reachable = frozenset(graph.reachable)
    return (name for name in graph.dtd.elements if name not in reachable)


# -- text ------------------------------------------------------------------------------------------


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
    return _WRAPPER.wrap(f"{title}: {text}") if text else []


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
        (root + _CONTENT[graph.dtd.elements[root].kind], root, "") for root in reversed(graph.roots)
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
    occurrences: Mapping[str, Occurs] = element.occurrences
    if element.kind is ContentKind.ANY:
        occurrences = dict.fromkeys(held, Occurs.ZERO_OR_MORE)
    for child, occurs in occurrences.items():
        text = child + occurs.value
        if child not in graph.dtd.elements:
            yield f"{text}: not declared", None
        elif homes[child] == name or not graph.children(child):
            shown = child if homes[child] == name else None
            yield text + _CONTENT[graph.dtd.elements[child].kind], shown
        else:
            yield f"{text}: {'a root' if homes[child] is None else f'as in {homes[child]}'}", None


_CONTENT = {
    ContentKind.EMPTY: ": empty",
    ContentKind.ANY: ": any element",
    ContentKind.MIXED: ": text",
    ContentKind.CHILDREN: "",
}


# -- drawings --------------------------------------------------------------------------------------


def dot(graph: SchemaGraph) -> str:
    r"""The graph in the language of Graphviz.

    Roots have a double border, cycles are red, what cannot be reached is grey. Elements with
    ``ANY`` content have a dashed border and no edges: those to all others would hide the rest.
    Beyond 500 edges, for which layers of elements can take hours, Graphviz is asked for a layout by
    springs, and how often elements occur is left out.

    >>> from tamis.schema.reader import parse_dtd
    >>> print(dot(SchemaGraph.of(parse_dtd("<!ELEMENT a (b?, a*)> <!ELEMENT b EMPTY>"))), end="")
    digraph schema {
      graph [rankdir=LR]
      node [shape=box, style=rounded, fontname="sans-serif", height=0.3]
      edge [fontname="sans-serif", arrowsize=0.6]
      "a" [peripheries=2, color=red, penwidth=2]
      "b"
      "a" -> "b" [label="?"]
      "a" -> "a" [label="*", color=red, penwidth=2]
    }
    """
    return "\n".join(["digraph schema {", *(f"  {line}" for line in _statements(graph)), "}", ""])


def _statements(graph: SchemaGraph) -> Iterator[str]:
    elements = graph.dtd.elements
    edges = [
        (name, child, occurs)
        for name, element in elements.items()
        for child, occurs in element.occurrences.items()
        if child in elements
    ]
    is_crowded = len(edges) > _LAYERED_EDGES
    layout = "layout=sfdp, overlap=prism, splines=line" if is_crowded else "rankdir=LR"
    yield f"graph [{layout}]"
    yield 'node [shape=box, style=rounded, fontname="sans-serif", height=0.3]'
    yield 'edge [fontname="sans-serif", arrowsize=0.6]'
    cycle_of = {name: number for number, cycle in enumerate(graph.cycles) for name in cycle}
    lost = frozenset(unreachable(graph))
    for name, element in elements.items():
        yield _quoted(name) + _with(
            (name in graph.roots, "peripheries=2"),
            (element.kind is ContentKind.ANY, 'style="rounded,dashed"'),
            (name in cycle_of, "color=red, penwidth=2"),
            (name in lost, "color=gray, fontcolor=gray"),
        )
    for name, child, occurs in edges:
        is_on_cycle = name in cycle_of and cycle_of[name] == cycle_of.get(child)
        yield f"{_quoted(name)} -> {_quoted(child)}" + _with(
            (occurs is not Occurs.ONCE and not is_crowded, f'label="{occurs.value}"'),
            (is_on_cycle, "color=red, penwidth=2"),
            (name in lost, "color=gray"),
        )


def _with(*attributes: tuple[bool, str]) -> str:
    text = ", ".join(text for applies, text in attributes if applies)
    return f" [{text}]" if text else ""


def _quoted(name: str) -> str:
    r"""A string of Graphviz; it takes backslashes in labels for escapes.

    >>> print(_quoted('a"b\\c'))
    "a\"b\\c"
    """
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def svg(graph: SchemaGraph) -> bytes:
    """The graph as Graphviz draws it; a ``UsageError`` if it is not installed, or fails."""
    program = shutil.which("dot")
    if program is None:
        raise UsageError(
            "drawing needs Graphviz, which is not installed: install it (on Debian or Ubuntu, the "
            "package graphviz), or take DOT and draw it elsewhere"
        )
    command, text = [program, "-Tsvg"], dot(graph).encode()
    try:
        return subprocess.run(
            command, input=text, capture_output=True, timeout=_SECONDS_MAX, check=True
        ).stdout
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"Graphviz had no layout after {_SECONDS_MAX} s: take DOT, and another of its layouts"
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        raise UsageError(f"Graphviz failed: {said}") from None
