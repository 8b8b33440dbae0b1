"""The graph schema of a DTD as a drawing, which Graphviz lays out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

from tamis.core.errors import UsageError
from tamis.schema.dtd import ContentKind, Occurs
from tamis.schema.facts import unreachable
from tamis.schema.graph import SchemaGraph

_LAYERED_EDGES = 500  # a real DTD of 731 edges took more than 25 s, one of 659 took 1.2 s
_SECONDS_MAX = 300


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
    """The graph as Graphviz draws it.

    Raises:
        UsageError: Graphviz is not installed, or it failed.
    """
    program = shutil.which("dot")
    if program is None:
        raise UsageError(
            "drawing needs Graphviz, which is not installed: install it (on Debian or Ubuntu, the "
            "package graphviz), or take DOT and draw it elsewhere"
        )
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=dot(graph).encode(),
            capture_output=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"Graphviz had no layout after {_SECONDS_MAX} s: take DOT, and another of its layouts"
        ) from None
    if done.returncode != 0:
        raise UsageError(f"Graphviz failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
