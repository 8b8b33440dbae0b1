"""``tamis schema``: what a DTD permits, told and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from tamis.cli import arguments as args
from tamis.cli.console import open_results
from tamis.cli.options import Argument

EXAMPLES = """\b
Examples:
  tamis schema order.dtd
  tamis schema book.xml --catalog dtds/ --format svg --output book.svg
"""


_PATHS_MAX = 10_000


def schema(
    dtd: Annotated[Path, Argument(metavar="DTD", help=args.DTD_HELP)],
    root: args.RootNames = None,
    catalog: args.CatalogFolders = None,
    limit: args.LimitSettings = None,
    format: Literal["text", "json", "paths", "dot", "svg"] = "text",
    output: Path | None = None,
) -> None:
    """Show what a DTD permits: which elements may stand in which, how deep, and on which cycles.

    In the drawing, roots have a double border, cycles are red, and what no document can have is
    grey. Elements whose content is ANY are dashed, without the edges to all others.

    Options:
        format: text: a summary, and a tree of the elements. json: one object with that and the
            declarations. paths: those from a root to an element, one a line, 10,000 at most. dot: a
            drawing in the language of Graphviz. svg: as Graphviz draws it.
        output: Write to this file instead of standard output.
    """
    from tamis.schema import describe as shown  # noqa: PLC0415 - keeps --help fast

    graph = args.read_graph(dtd, catalog, root, args.read_limits(limit))
    with open_results(output) as results:
        match format:
            case "text":
                results.write_text(shown.describe(graph))
            case "json":
                results.write(shown.facts(graph))
            case "paths":
                _, steps = shown.count_paths(graph)
                for path in graph.paths(steps, _PATHS_MAX):
                    results.write_text("/" + "/".join(path))
            case "dot":
                results.write_bytes(shown.dot(graph).encode())
            case "svg":
                results.write_bytes(shown.svg(graph))
