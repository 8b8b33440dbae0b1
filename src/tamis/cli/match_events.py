"""``tamis match-events``: which subscriptions match which events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tamis.cli import arguments as args
from tamis.cli.console import in_options, open_results, progress, reading, standard_input
from tamis.cli.options import Argument, FileName, Option
from tamis.core.arguments import is_store, to_json
from tamis.core.errors import UsageError
from tamis.core.threads import usable_cores
from tamis.documents import files

if TYPE_CHECKING:
    from tamis.core.errors import SubscriptionId
    from tamis.events.matcher import CompiledEventMatcher
    from tamis.events.matches import EventMatches

EXAMPLES = """\b
Examples:
  tamis match-events --subscriptions alarms.tsv events.ndjson > matches.ndjson
  tamis match-events --subscriptions alarms.tsv monday.ndjson.gz tuesday.ndjson.gz
  sensors | tamis match-events --subscriptions alarms.tsv --matching-only -

\b
Results:
  {"line": 1, "matches": ["storm", "frost"]}
  {"line": 2, "error": "not JSON: unexpected end of data, at character 9"}
  {"file": "monday.ndjson.gz", "line": 1, "matches": []}
"""


_PARQUET = ".parquet"
ENGINES = ("auto", "signature", "reference", "sff", "ocm", "ccm")


def match_events(  # noqa: PLR0913, PLR0917 - one for each option
    events: Annotated[list[FileName], Argument(metavar="EVENTS")],
    subscriptions: Path,
    engine: Annotated[
        str, Option(metavar="NAME", known=ENGINES, help=f"The engine: {', '.join(ENGINES)}.")
    ] = "auto",
    interfaces: Path | None = None,
    by: Literal["subscription", "filter", "interface"] = "subscription",
    skip_bad: args.SkipBad = False,
    matching_only: bool = False,
    threads: args.Threads = None,
    limit: args.LimitSettings = None,
    output: args.Output = None,
) -> None:
    """Match events, which are sets of attributes with values, against subscriptions.

    Prints one JSON object per event, in the order of the events: the line number, from 1, and the
    ids of the matching subscriptions, in the order of the subscriptions. An event in error has
    "error" instead, and the exit status is 3. Blank lines are skipped. For Parquet, the object has
    the row number instead of the line number. With several files, the object begins with the file
    name.

    Values are strings, numbers, booleans and null; order.total and items[].price are what is in
    objects and lists. Subscriptions compare them with = != < <= > >=, prefix, suffix, contains,
    like, matches, cidr, in (…), between, exists and absent, joined with and, or, not and
    parentheses; i"…" ignores case, field(…) is another attribute. See docs/events.md.

    Files and streams may have any size, because they are matched while they are read. The data of
    a pipe is answered as soon as it arrives.

    Options:
        events: A file with one JSON object per line, a *.parquet file whose columns are attributes
            (needs pyarrow), or - for standard input. Tamis decompresses gzip.
        subscriptions: A UTF-8 file with one subscription per line: id, tab, condition, such as area
            = "area1" and temp > 30. Without a tab, the line is a condition, and its id is the line
            number. Blank lines and lines that begin with # are skipped. In *.ndjson, each line is
            {"id": …, "expression": "…"}, optionally with an "interface". Or a folder of tamis
            subscriptions.
        interfaces: The interface of each subscription, for --by interface: one line per
            subscription with its id, tab, and the id of its interface. In *.ndjson, each line is
            {"id": …, "interface": …}.
        by: What "matches" lists. subscription: ids of subscriptions. filter: numbers of filters,
            from 0; filters are the conjunctions of all subscriptions, in order. interface: ids of
            interfaces that have a matching subscription.
        matching_only: Print only events with matches or errors.
    """
    from tamis.events.matcher import compile_events  # noqa: PLC0415 - keeps --help fast
    from tamis.events.subscriptions import EventSubscriptions  # noqa: PLC0415

    if events.count(FileName("-")) > 1:
        raise UsageError("standard input can be read only once: give - once")
    for name in events:
        if files.is_zip(name) or files.is_tar(name):
            raise UsageError(f"{name} is an archive: unpack it, and give the files in it")
    if is_store(subscriptions):
        given = engine != "auto", interfaces, skip_bad, limit
        with args.open_store(subscriptions, "events", given=given) as live:
            matcher: CompiledEventMatcher = live.compiled()
    else:
        limits = args.read_limits(limit)
        belonging = None if interfaces is None else _read_interfaces(interfaces)
        found = EventSubscriptions.from_file(
            subscriptions, interfaces=belonging, skip_bad=True, limits=limits
        )
        read = args.usable(found, subscriptions, skip_bad)
        matcher = compile_events(read, engine=engine, limits=limits)
    if by == "interface" and matcher.interface_ids is matcher.ids:
        raise UsageError(
            "--by interface needs to know which subscriptions belong to each: give --interfaces, "
            'or an "interface" in each line of *.ndjson'
        )
    with (
        open_results(output) as results,
        progress(len(events), results.is_terminal, "files") as advance,
    ):
        for name in events:
            file = f'"file": {to_json(name)}, ' if len(events) > 1 else ""
            place = "row" if name.endswith(_PARQUET) else "line"
            try:
                for answers in _answers(matcher, name, by, threads or usable_cores()):
                    beginning = f'{{{file}"{place}": '
                    results.write_bytes(_lines(answers, beginning, matching_only))
                    results.errors += len(answers.errors)
            except UsageError as error:  # a column that filters name is of a type that none can be
                if not name.endswith(_PARQUET):
                    raise
                results.write_bytes(f'{{{file}"error": {to_json(f"{name}: {error}")}}}\n'.encode())
                results.errors += 1
            advance()


def _answers(
    matcher: CompiledEventMatcher,
    name: str,
    by: Literal["subscription", "filter", "interface"],
    threads: int,
) -> Iterator[EventMatches]:
    if name == "-":
        return matcher.ndjson_answers(standard_input(), by, threads)
    read = matcher.arrow_answers if name.endswith(_PARQUET) else matcher.ndjson_answers
    return read(Path(name), by, threads)


def _read_interfaces(file: Path) -> dict[SubscriptionId, SubscriptionId]:
    with reading(file):
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    is_json = file.suffix == ".ndjson"
    found: dict[SubscriptionId, SubscriptionId] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or (line.startswith("#") and not is_json):
            continue
        pair = _interface_of(line, is_json)
        if pair is None:
            form = '{"id": …, "interface": …}' if is_json else "id, tab, interface"
            raise UsageError(f"{file}, line {number}: write {form}")
        id, interface = pair
        if id in found:
            raise UsageError(f"{file}, line {number}: the id is there before")
        found[id] = interface
    return found


def _interface_of(line: str, is_json: bool) -> tuple[SubscriptionId, SubscriptionId] | None:
    """The ids of a subscription and of its interface, or None if the line has another form."""
    try:
        if not is_json:
            id, interface = line.split("\t")
            return (id, interface.strip()) if interface.strip() else None
        pair = tuple(json.loads(line)[name] for name in ("id", "interface"))
    except (ValueError, RecursionError, KeyError, TypeError):
        return None
    are_ids = all(isinstance(one, str | int) and not isinstance(one, bool) for one in pair)
    return pair if are_ids else None


def _lines(answers: EventMatches, beginning: str, matching_only: bool) -> bytes:
    """The lines of some events; ``beginning`` is of each, up to the line or row."""
    assert answers.lines is not None
    found: list[bytes] = []
    for number, line in enumerate(answers.lines.tolist()):
        if number in answers.errors:
            error = to_json(in_options(answers.errors[number].message))
            found.append(f'{beginning}{line}, "error": {error}}}\n'.encode())
        elif not matching_only or answers.count(number):
            found += (f'{beginning}{line}, "matches": '.encode(), answers.json(number), b"}\n")
    return b"".join(found)
