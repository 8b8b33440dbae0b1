"""``tamis explain`` and ``tamis schema``: what an expression asks, and what a DTD permits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Status, about, open_results, reading, say, standard_input
from tamis.cli.documents import find_document
from tamis.cli.options import Argument, Option
from tamis.core.errors import DocumentError, EventError, UnsupportedExpression, UsageError
from tamis.core.limits import Limits
from tamis.language import model
from tamis.language.lower import lowered
from tamis.language.printer import print_expression, print_path, print_test
from tamis.language.values import value_string
from tamis.language.xpath import Operand, parse, parse_value

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


STRATEGIES = (
    *("auto", "relative", "path-sharing-f", "path-sharing-fw", "path-sharing-fwr"),
    *("plan-sharing", "reference"),
)


def explain(  # noqa: PLR0913, PLR0917 - one for each option
    expression: Annotated[str, Argument(metavar="EXPRESSION")],
    document: Annotated[str | None, Argument(metavar="DOCUMENT")] = None,
    namespaces: args.Namespaces = args.Namespaces(),
    declared_encoding: args.EncodingRule = "check",
    limit: args.LimitSettings = None,
    events: bool = False,
    transformation: bool = False,
    strategy: Annotated[
        str, Option(known=STRATEGIES, help=f"With --transformation: {', '.join(STRATEGIES)}.")
    ] = "auto",
    dtd: Path | None = None,
    root: Annotated[str | None, Option(metavar="NAME")] = None,
) -> None:
    """Explain an expression, or its answer to a document.

    Without a document, prints the parts of the expression and the engine that answers it. With a
    document, prints the nodes that each step and predicate selects, up to the first that selects
    none. For an expression that is a number or a string, such as count(//item), prints its value.

    With --events, prints the filters of the expression; with an event, also the first constraint of
    each filter that the event does not satisfy. With --transformation, prints the strategy that
    selects the nodes; a strategy of tamis_papers also prints its plan and the claims of the DTD
    that the plan uses.

    Exit status: 0, whether the document matches or not.

    Options:
        expression: An XPath expression; with --events, an expression of tamis match-events; with
            --transformation, a FLWR expression.
        document: A file, or - for standard input. With --events, the file is one JSON object.
        events: The expression is a condition on events.
        transformation: The expression is a subscription of tamis transform.
        dtd: With --transformation, a DTD for the plan.
        root: With --dtd, the root element of documents.
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
    from tamis.matching.matcher import compile_subscriptions, value_matcher  # noqa: PLC0415

    namespaces = declared.declared()
    operand: Operand | None = None
    try:
        query = parse(expression, namespaces, limits)
    except UnsupportedExpression as refusal:
        with suppress(UnsupportedExpression):
            operand = parse_value(expression, namespaces, limits)
        if operand is None:
            raise
        if document is None:
            return "\n".join(_outline_of_value(expression.strip(), operand, refusal))
    if document is None:
        return "\n".join(outline(query))
    source = find_document(document).document
    try:
        if isinstance(source, DocumentError):
            raise source
        if operand is not None:
            matcher = value_matcher(operand).with_limits(limits)
            match = matcher.match(source, nodes="all", declared_encoding=encoding)
            return f"{value_string(match.document_nodes.value(operand))}: {expression.strip()}"
        matcher = compile_subscriptions(
            [("expression", expression)], **declared.read(), limits=limits
        )
        return str(matcher.explain(source, "expression", declared_encoding=encoding))
    except DocumentError as error:
        say(about(document, error))
        raise Exit(Status.DOCUMENTS) from None


def _outline_of_value(text: str, operand: Operand, refusal: UnsupportedExpression) -> Iterator[str]:
    """The parts of an expression that only ``tamis select`` evaluates."""
    yield text
    if isinstance(operand, model.Value):
        yield from _branches(_of_value(operand), "")
    elif not isinstance(operand, str | float):
        yield from _branches((_of_expression(operand),), "")
    yield f"tamis select evaluates it; a subscription cannot use it: {refusal.message}"


def _of_events(expression: str, limits: Limits, argument: str | None) -> str:
    from tamis.events.matcher import compile_events  # noqa: PLC0415
    from tamis.language.constraints import print_filters  # noqa: PLC0415
    from tamis.language.events import parse_filters  # noqa: PLC0415

    filters = parse_filters(expression, limits)
    if argument is None:
        return "\n".join(["any of", *(f"  {print_filters([filter])}" for filter in filters)])
    with reading(argument):
        event_text = standard_input().read() if argument == "-" else Path(argument).read_bytes()
    matcher = compile_events({"expression": expression}, limits=limits)
    try:
        event = matcher.encoder.line(event_text)
    except EventError as error:
        say(about(argument, error))
        raise Exit(Status.DOCUMENTS) from None
    return str(matcher.explain(event, "expression"))


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
    from tamis.matching.planner import engine_of  # noqa: PLC0415 - keeps --help fast
    from tamis.matching.projection import projection_of  # noqa: PLC0415

    whole = _of_expression(query.expression)
    yield whole.text
    if whole.meaning:
        yield f"{whole.meaning}:"
    yield from _branches(whole.parts, "")
    for prefix, uri in query.namespaces:
        yield f"{prefix or 'default namespace'}: {uri}"
    projection = projection_of(lowered([query]))
    reads = {
        "elements": True,
        "attributes": projection.attributes,
        "text": projection.text,
        "comments and processing instructions": projection.misc,
        "the prefixes of names": projection.prefixes,
    }
    yield f"reads: {', '.join(what for what, is_read in reads.items() if is_read)}"
    yield f"engine: {engine_of(query)}"


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
    """Show the structure that a DTD permits: nesting, depth and cycles of elements.

    In drawings, roots have a double border, cycles are red, and elements that no document can
    contain are grey. Elements with the content ANY are dashed; their edges are left out.

    Options:
        format: text: a summary and a tree of the elements. json: one object with the summary and
            the declarations. paths: the paths from a root to an element, one per line, at most
            10,000. dot: a drawing in the language of Graphviz. svg: a drawing by Graphviz.
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
