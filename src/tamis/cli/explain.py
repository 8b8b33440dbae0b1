"""``tamis explain`` and ``tamis schema``: what an expression asks, and what a DTD permits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Status, about, open_results, reading, say, standard_input
from tamis.cli.documents import find_document
from tamis.cli.options import Argument, Option
from tamis.core.errors import DocumentError, EventError, UsageError
from tamis.core.limits import Limits
from tamis.language import model
from tamis.language.printer import print_expression, print_path, print_test
from tamis.language.xpath import parse

if TYPE_CHECKING:
    from tamis.documents.encodings import DeclaredEncoding

EXAMPLES = {
    "explain": """\b
Examples:
  tamis explain '//order[total > 100]/item[2]'
  tamis explain '//order[total > 100]/item[2]' order.xml
  tamis explain --transformation "$(cat late.xq)" --strategy plan-sharing --dtd orders.dtd
  echo '{"temp": 25}' | tamis explain --events 'area = "a1" and temp > 30 or wind > 20' -
""",
    "schema": """\b
Examples:
  tamis schema order.dtd
  tamis schema book.xml --catalog dtds/ --format svg --output book.svg
""",
}


def explain(  # noqa: PLR0913, PLR0917 - one for each option
    expression: Annotated[str, Argument(metavar="EXPRESSION")],
    document: Annotated[str | None, Argument(metavar="DOCUMENT")] = None,
    namespaces: args.Namespaces = args.Namespaces(),
    declared_encoding: args.EncodingRule = "check",
    limit: args.LimitSettings = None,
    events: bool = False,
    transformation: bool = False,
    strategy: str = "auto",
    dtd: Path | None = None,
    root: Annotated[str | None, Option(metavar="NAME")] = None,
) -> None:
    """Explain an expression, or its answer to a document.

    Without a document: how the expression is read, part by part. With one: what each step and
    each predicate found in it, up to the first that found nothing. With --events: the filters that
    it comes to, and in each the first constraint that an event does not satisfy. With
    --transformation: the strategy that finds its nodes, and if it is one of the broker paper's, the
    plan, with the claims that it relies on.

    Exit status 0, whether the document matches or not.

    Options:
        expression: An XPath expression; with --events, one of tamis match-events; with
            --transformation, a FLWR expression.
        document: A file, or - for standard input.
        events: It is of events, and the document is one: a JSON object.
        transformation: It is one of tamis transform.
        strategy: With --transformation: whose plan is printed: relative, path-sharing-f,
            path-sharing-fw, path-sharing-fwr, plan-sharing or reference.
        dtd: With --transformation: a DTD that the plan relies on.
        root: With --dtd: the element that documents begin with.
    """
    limits = args.read_limits(limit)
    if transformation:
        if document is not None or events:
            raise UsageError("--transformation: leave out --events and the document")
        from tamis.transform.transformer import Transformer  # noqa: PLC0415 - keeps --help fast

        transformer = Transformer(
            **namespaces.read(), strategy=strategy, dtd=dtd, root=root, limits=limits
        )
        transformer.add("expression", expression)
        explanation = transformer.explain("expression")
    elif strategy != "auto" or dtd is not None or root is not None:
        raise UsageError(
            "--strategy, --dtd and --root are about transformations: give --transformation too"
        )
    elif events:
        if any(namespaces):
            raise UsageError("--events: namespaces are about documents: leave them out")
        explanation = _of_events(expression, limits, document)
    else:
        explanation = _of_documents(expression, namespaces, limits, document, declared_encoding)
    with open_results() as results:
        results.write_text(explanation)


def _of_documents(
    expression: str,
    declared: args.Namespaces,
    limits: Limits,
    document: str | None,
    encoding: DeclaredEncoding,
) -> str:
    if expression.lstrip().startswith("<"):
        raise UsageError("this is no XPath: if it is a transformation, give --transformation")
    query = parse(expression, declared.declared(), limits)
    if document is None:
        return "\n".join(outline(query))
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415

    matcher = compile_subscriptions([("expression", expression)], **declared.read(), limits=limits)
    found = find_document(document).document
    try:
        if isinstance(found, DocumentError):
            raise found
        return str(matcher.explain(found, "expression", declared_encoding=encoding))
    except DocumentError as error:
        say(about(document, error))
        raise Exit(Status.DOCUMENTS) from None


def _of_events(expression: str, limits: Limits, argument: str | None) -> str:
    from tamis.events.explain import explain as explain_event  # noqa: PLC0415
    from tamis.events.kernels import ODD  # noqa: PLC0415
    from tamis.events.ndjson import read_line  # noqa: PLC0415
    from tamis.events.subscriptions import EventSubscriptions  # noqa: PLC0415
    from tamis.language.constraints import parse_filters, print_filters  # noqa: PLC0415

    filters = parse_filters(expression, limits)
    if argument is None:
        return "\n".join(["any of", *(f"  {print_filters([filter])}" for filter in filters)])
    with reading(argument):
        event_text = standard_input().read() if argument == "-" else Path(argument).read_bytes()
    table = EventSubscriptions([("expression", expression)], limits=limits).table
    try:
        event = read_line(event_text, ODD, table.names, limits)
    except EventError as error:
        say(about(argument, error))
        raise Exit(Status.DOCUMENTS) from None
    return str(explain_event(table, 0, "expression", event))


# -- an expression as a tree of its parts, each with its meaning -----------------------------------

_WIDTH = 60  # longer expressions are cut, but for the first line


class _Part(NamedTuple):
    text: str
    meaning: str
    parts: tuple[_Part, ...] = ()


def outline(query: model.Query) -> Iterator[str]:
    r"""The query in its canonical spelling, the tree of its parts, what it reads, and its engine.

    >>> from tamis.language.xpath import parse
    >>> print("\n".join(outline(parse("//order[total>100]/item[2]"))))
    //order[total > 100]/item[2]
    some node is selected:
    ├─ descendant-or-self::node()
    ├─ child::order
    │  └─ total > 100: true of some node, as a number
    │     └─ child::total
    └─ child::item
       └─ 2: the position, counted for each parent
    reads: elements, text
    engine: automaton
    """
    from tamis.matching.planner import reason_of  # noqa: PLC0415 - keeps --help fast
    from tamis.matching.projection import projection_of  # noqa: PLC0415

    whole = _of_expression(query.expression)
    yield whole.text
    if whole.meaning:
        yield f"{whole.meaning}:"
    yield from _branches(whole.parts, "")
    for prefix, uri in query.namespaces:
        yield f"{prefix or 'default namespace'}: {uri}"
    projection = projection_of(query.expression)
    reads = {
        "elements": True,
        "attributes": projection.attributes,
        "text": projection.text,
        "comments and processing instructions": projection.misc,
        "the prefixes of names": projection.prefixes,
    }
    yield f"reads: {', '.join(what for what, is_read in reads.items() if is_read)}"
    yield f"engine: {reason_of(query)}"


def _branches(parts: tuple[_Part, ...], indent: str) -> Iterator[str]:
    for index, part in enumerate(parts):
        is_last = index == len(parts) - 1
        text = part.text if len(part.text) <= _WIDTH else part.text[: _WIDTH - 1] + "…"
        meaning = f": {part.meaning}" if part.meaning else ""
        yield f"{indent}{'└─' if is_last else '├─'} {text}{meaning}"
        yield from _branches(part.parts, indent + ("   " if is_last else "│  "))


def _of_expression(expression: model.Expression) -> _Part:
    text = print_expression(expression)
    match expression:
        case model.Exists(paths):
            return _Part(text, "some node is selected", _of_paths(paths))
        case model.Compare(operator, value, literal):
            as_strings = isinstance(literal, str) and operator in ("=", "!=")
            kind = "string" if as_strings else "number"
            if isinstance(value, model.Nodes):
                return _Part(text, f"true of some node, as a {kind}", _of_paths(value.paths))
            return _Part(text, f"compared as {kind}s", _of_value(value))
        case model.Contains(value, _) | model.StartsWith(value, _):
            return _Part(text, "", _of_value(value))
        case model.Not(operand):
            return _Part(text, "this is false", (_of_expression(operand),))
        case model.And(operands):
            return _Part(text, "all of these are true", tuple(map(_of_expression, operands)))
        case model.Or(operands):
            return _Part(text, "some of these is true", tuple(map(_of_expression, operands)))
        case model.Constant():
            return _Part(text, "")


def _of_value(value: model.Value) -> tuple[_Part, ...]:
    match value:
        case model.Nodes(paths):
            return _of_paths(paths)
        case model.StringOf(path):
            return (_Part("the string value of the first node", "", _of_path(path)),)
        case model.NameOf(path, local):
            name = "local name" if local else "name, as it is written,"
            return (_Part(f"the {name} of the first node", "", _of_path(path)),)
        case model.NormalizeSpace(text):
            return (_Part("with single spaces, and none at the ends", "", _of_value(text)),)
        case model.StringLength(text):
            return (_Part("the number of characters", "", _of_value(text)),)
        case model.Count(path):
            return (_Part("the number of nodes", "", _of_path(path)),)


def _of_paths(paths: tuple[model.Path, ...]) -> tuple[_Part, ...]:
    if len(paths) == 1:
        return _of_path(paths[0])
    return tuple(_Part(print_path(path), "a path", _of_path(path)) for path in paths)


def _of_path(path: model.Path) -> tuple[_Part, ...]:
    return tuple(
        _Part(
            f"{step.axis.value}::{print_test(step.test)}",
            "",
            tuple(map(_of_predicate, step.predicates)),
        )
        for step in path.steps
    ) or (_Part("/", "the document node"),)


def _of_predicate(predicate: model.Predicate) -> _Part:
    if isinstance(predicate, model.Position):
        return _Part(str(predicate.number), "the position, counted for each parent")
    return _of_expression(predicate)


# -- DTDs ------------------------------------------------------------------------------------------

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
