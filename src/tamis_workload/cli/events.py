"""``tamis workload events``: filters of attribute–value events, and the events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from tamis.cli.console import open_results
from tamis.cli.options import Option
from tamis.core.errors import UsageError
from tamis_workload.cli import Seed, make_folder, parse_range

EXAMPLES = """\b
Examples:
  tamis workload events --output default/
  tamis workload events --filters 250000 --names 10 --skew 1 --output many/
  tamis workload events --strings 0.5 --operators "= 0.5, < 0.5" --output strings/
"""


def events(  # noqa: PLR0913, PLR0917 - one for each option
    output: Annotated[Path, Option(metavar="FOLDER")],
    count: Annotated[int, Option(min=0)] = 1000,
    interfaces: Annotated[int, Option(metavar="N")] = 10,
    filters: Annotated[str, Option(metavar="N")] = "22500..27500",
    constraints: Annotated[str, Option(metavar="N")] = ("3..5"),
    attributes: Annotated[str, Option(metavar="N")] = "3..5",
    names: Annotated[int, Option(metavar="N")] = 100,
    skew: Annotated[float, Option(metavar="S")] = 0.0,
    values: Annotated[int, Option(metavar="N")] = 100,
    strings: Annotated[float, Option(metavar="SHARE")] = 0.0,
    operators: Annotated[str | None, Option(metavar="SHARES")] = None,
    string_operators: Annotated[str | None, Option(metavar="SHARES")] = None,
    seed: Seed = 0,
) -> None:
    """Generate events, and subscriptions with one filter each.

    The defaults are the default scenario of the PCM paper. The options vary it as the paper's
    experiments do.

    Options:
        output: The folder for subscriptions.tsv, interfaces.tsv (the interface of each
            subscription) and events.ndjson.
        count: The number of events.
        interfaces: The number of interfaces.
        filters: The number of filters per interface: N, or a range such as 10..20.
        constraints: The number of constraints per filter: N, or a range.
        attributes: The number of attributes per event: N, or a range.
        names: The number of attribute names.
        skew: Zipf's exponent for the choice of names. 0: all names are equally likely.
        values: The number of different values.
        strings: The share of attribute names whose values are strings.
        operators: The share of each operator in constraints on numbers. Default: '= 0.25,
            != 0.25, > 0.25, < 0.25'.
        string_operators: The share of each operator in constraints on strings. Default: '= 0.25,
            != 0.25, prefix 0.25, contains 0.25'.
    """
    from tamis_workload.events import (  # noqa: PLC0415 - keeps --help fast
        NUMBER_OPERATORS,
        STRING_OPERATORS,
        EventWorkload,
        event_lines,
        interface_lines,
        subscription_lines,
    )

    workload = EventWorkload(
        interfaces=interfaces,
        filters=_exactly(filters),
        constraints=_exactly(constraints),
        attributes=_exactly(attributes),
        names=names,
        skew=skew,
        values=values,
        strings=strings,
        operators=NUMBER_OPERATORS if operators is None else _shares(operators),
        string_operators=(
            STRING_OPERATORS if string_operators is None else _shares(string_operators)
        ),
        seed=seed,
    )
    make_folder(output)
    table = workload.table()
    _write(output / "subscriptions.tsv", subscription_lines(table))
    _write(output / "interfaces.tsv", interface_lines(table))
    _write(output / "events.ndjson", event_lines(workload.events(count), table.names))


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with open_results(path) as results:
        for piece in pieces:
            results.write_bytes(piece)


def _exactly(text: str) -> tuple[int, int]:
    """``N..M``, or ``N``: so many exactly.

    >>> _exactly("3..5"), _exactly("4")
    ((3, 5), (4, 4))
    """
    least, most = parse_range(text, 0)
    return (least, most) if ".." in text else (most, most)


def _shares(text: str) -> dict[str, float]:
    """Operators and their shares.

    >>> _shares("= 0.5, < 0.5")
    {'=': 0.5, '<': 0.5}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        operator, _, share = part.strip().partition(" ")
        try:
            found[operator] = float(share)
        except ValueError:
            raise UsageError(f"expected an operator and its share, not {part.strip()!r}") from None
    return found
