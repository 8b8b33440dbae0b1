"""``tamis convert``: rules of others as expressions about events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Status, open_results, reading, say
from tamis.cli.options import Argument, Option
from tamis.core.errors import SubscriptionError, UsageError

EXAMPLES = """\b
Examples:
  tamis convert --from eventbridge rules.json > rules.ndjson
  tamis convert --from sns policies.ndjson > rules.ndjson
  tamis convert --from alertmanager routes.tsv > rules.ndjson
  tamis match-events --subscriptions rules.ndjson events.ndjson

\b
Results:
  {"id": "ec2", "expression": "source[] = \\"aws.ec2\\""}
"""
_NAMES = ("id", "Id", "Name", "SubscriptionArn")
_PATTERNS = ("pattern", "rule", "EventPattern", "FilterPolicy")


def convert(
    files: Annotated[list[Path], Argument(metavar="FILE", help="Rules; see above.")],
    from_: Annotated[Literal["eventbridge", "sns", "alertmanager"], Option("--from")],
    output: args.Output = None,
) -> None:
    """Convert rules of others to subscriptions for tamis match-events.

    Prints one JSON object per rule, with "id" and "expression". Rules that cannot be converted are
    listed on standard error, with the reason; the exit status is then 2.

    A *.json file has one pattern or filter policy, whose id is the name of the file; or what the
    AWS command line lists: {"Rules": [{"Name": …, "EventPattern": …}]}. A *.ndjson or *.jsonl file
    has lines {"id": …, "pattern": {…}}. For alertmanager, each line of a file is an id, a tab and
    matchers; a line without a tab is matchers, with its number as the id.

    Options:
        from_: Whose rules these are.
    """
    from tamis.events.convert import from_filter_policy, from_matchers, from_pattern  # noqa: PLC0415 - keeps --help fast

    of: dict[str, Callable[[Any], str]] = {
        "eventbridge": from_pattern,
        "sns": from_filter_policy,
        "alertmanager": from_matchers,
    }
    refused = 0
    with open_results(output) as results:
        for file in files:
            for id, rule in _rules(file, is_text=from_ == "alertmanager"):
                try:
                    results.write({"id": id, "expression": of[from_](rule)})
                except SubscriptionError as error:
                    refused += 1
                    say(f"{file}: rule {id!r}: {error}")
    if refused:
        raise Exit(Status.USAGE)


def _rules(file: Path, is_text: bool) -> Iterator[tuple[str | int, Any]]:
    """The rules of a file, with their ids."""
    with reading(str(file)):
        text = file.read_text("utf-8")
    if is_text or file.suffix in (".ndjson", ".jsonl"):
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip() or (is_text and line[0] == "#"):
                continue
            if is_text:
                id, tab, matchers = line.partition("\t")
                yield (id, matchers) if tab else (number, line)
            else:
                yield _named(_json(file, line, number), number)
        return
    found = _json(file, text)
    if isinstance(found, Mapping) and isinstance(found.get("Rules"), list):
        for number, rule in enumerate(found["Rules"], 1):
            if not isinstance(rule, Mapping) or "EventPattern" in rule:  # others are schedules
                yield _named(rule, number)
    else:
        yield file.stem, found


def _named(rule: Any, number: int) -> tuple[str | int, Any]:
    """The id and the pattern of a rule; a pattern by itself has its number as the id."""
    given = rule if isinstance(rule, Mapping) else {}
    wrapped = [name for name in _PATTERNS if name in given]
    names = [name for name in _NAMES if isinstance(given.get(name), str | int)]
    if len(wrapped) != 1 or not names:
        return number, rule
    pattern = given[wrapped[0]]
    if isinstance(pattern, str):  # as the AWS command line has it
        with suppress(ValueError):
            pattern = json.loads(pattern)
    return given[names[0]], pattern


def _json(file: Path, text: str, line: int | None = None) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        where = f"{file}, line {line}" if line else str(file)
        raise UsageError(f"{where}: not JSON: {error}") from None
