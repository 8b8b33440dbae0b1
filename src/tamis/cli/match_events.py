"""``tamis match-events``: which subscriptions match which events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from click.exceptions import Exit

from tamis.cli.arguments import (
    EventEngineName,
    EventSubscriptionsFile,
    InterfacesFile,
    LimitSettings,
    Output,
    SkipBad,
    Threads,
    read_event_subscriptions,
    read_limits,
)
from tamis.cli.console import Status, in_options, progress
from tamis.cli.options import Argument, FileName, Option
from tamis.cli.results import open_results
from tamis.core.errors import UsageError

if TYPE_CHECKING:
    from tamis.core.errors import SubscriptionId
    from tamis.events.answers import EventAnswers
    from tamis.events.matcher import EventMatcher

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


def match_events(  # noqa: PLR0913, PLR0917 - one for each option
    events: Annotated[
        list[FileName],
        Argument(
            metavar="EVENTS",
            help="Files of events, a JSON object a line; *.parquet, whose columns are attributes "
            "(needs pyarrow); or - for standard input. What is gzip is decompressed.",
        ),
    ],
    subscriptions: EventSubscriptionsFile,
    engine: EventEngineName = "auto",
    interfaces: InterfacesFile = None,
    by: Annotated[
        Literal["subscription", "filter", "interface"],
        Option(
            help="What matches are: ids of subscriptions; or the numbers of filters, from 0: the "
            "conjunctions that subscriptions come to, in their order; or interfaces that have a "
            "subscription that matches."
        ),
    ] = "subscription",
    skip_bad: SkipBad = False,
    matching_only: Annotated[
        bool,
        Option("--matching-only", help="Leave out events that matched nothing; errors stay."),
    ] = False,
    threads: Threads = None,
    limit: LimitSettings = None,
    output: Output = None,
) -> None:
    """Match events, which are sets of attributes, against subscriptions.

    Prints one JSON object an event, in the order of the events: the number of its line, from 1, and
    the ids of the subscriptions that are true of it, in the order of the subscriptions; or its
    error, which makes the exit status 3. Blank lines are no events. Of Parquet it is the number of
    the row. Of several files, the name of the file comes first.

    Values are strings, numbers, booleans and null, which is as if the attribute were not there.
    Subscriptions compare attributes with = != < <= > >=, prefix, suffix, contains, in (…) and
    exists, joined with and, or and parentheses; docs/events.md has all of it.
    Files and streams of any size are read while they are matched; what a pipe has is answered
    before more is waited for.
    """
    from tamis.core.threads import usable_cores  # noqa: PLC0415
    from tamis.events.matcher import compile_events  # noqa: PLC0415 - keeps --help fast

    if events.count(FileName("-")) > 1:
        raise UsageError("standard input can be read only once: give - once")
    limits = read_limits(limit)
    read = read_event_subscriptions(subscriptions, interfaces, skip_bad, limits)
    if by == "interface" and read.interface_ids is read.ids:
        raise UsageError(
            "--by interface needs to know which subscriptions belong to each: give --interfaces, "
            'or an "interface" in each line of *.ndjson'
        )
    matcher = compile_events(read, engine=engine, limits=limits)
    ids: dict[str, Sequence[SubscriptionId]] = {
        "subscription": matcher.ids,
        "filter": range(matcher.table.filters),
        "interface": matcher.interface_ids,
    }
    errors = 0
    with (
        open_results(output) as results,
        progress(len(events), results.is_terminal, "files") as advance,
    ):
        lines = _Lines(ids[by], matching_only)
        for name in events:
            file = f'"file": {_json(name)}, ' if len(events) > 1 else ""
            place = "row" if name.endswith(_PARQUET) else "line"
            try:
                for answers in _answers(matcher, name, by, threads or usable_cores()):
                    results.write_bytes(lines.of(answers, f'{{{file}"{place}": '))
                    errors += len(answers.errors)
            except UsageError as error:  # a column that filters name is of a type that none can be
                if not name.endswith(_PARQUET):
                    raise
                results.write_bytes(f'{{{file}"error": {_json(f"{name}: {error}")}}}\n'.encode())
                errors += 1
            advance()
    if errors:
        raise Exit(Status.DOCUMENTS)


def _answers(
    matcher: EventMatcher,
    name: str,
    by: Literal["subscription", "filter", "interface"],
    threads: int,
) -> Iterator[EventAnswers]:
    """What matches the events of a file, or of standard input."""
    if name != "-":
        read = matcher.arrow_answers if name.endswith(_PARQUET) else matcher.ndjson_answers
        return read(Path(name), by, threads)
    if sys.stdin is None:  # as it is after <&-
        raise UsageError("standard input is closed")
    return matcher.ndjson_answers(sys.stdin.buffer, by, threads)


class _Lines:
    """Makes lines of answers, many at a time, as ``results.encode`` would of each.

    Args:
        ids: of what matches.
        matching_only: leave out what matched nothing.
    """

    def __init__(self, ids: Sequence[SubscriptionId], matching_only: bool) -> None:
        self.ids = ids
        self.matching_only = matching_only
        self._written: dict[int, str] = {}

    def of(self, answers: EventAnswers, beginning: str) -> bytes:
        """The lines of some events.

        Args:
            beginning: of each, up to the line or row.
        """
        assert answers.lines is not None
        lines = []
        every = zip(answers.lines.tolist(), answers.lists(), strict=True)
        for number, (line, matches) in enumerate(every):
            if matches:
                ids = ", ".join(map(self._id, matches))
                lines.append(f'{beginning}{line}, "matches": [{ids}]}}\n')
            elif number in answers.errors:
                error = _json(in_options(answers.errors[number].message))
                lines.append(f'{beginning}{line}, "error": {error}}}\n')
            elif not self.matching_only:
                lines.append(f'{beginning}{line}, "matches": []}}\n')
        return "".join(lines).encode()

    def _id(self, number: int) -> str:
        written = self._written.get(number)
        if written is None:
            written = self._written[number] = _json(self.ids[number])
        return written


def _json(value: object) -> str:
    """A value as JSON, which UTF-8 can hold."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
