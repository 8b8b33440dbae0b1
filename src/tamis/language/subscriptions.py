"""Sets of subscriptions: ids and expressions, from Python, from text files and from NDJSON."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tamis.errors import (
    BadSubscriptions,
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    SubscriptionSyntaxError,
    UnsupportedExpression,
    UsageError,
)
from tamis.language.grammar import is_ncname
from tamis.language.model import Constant, Query
from tamis.language.xpath import XML_NAMESPACE, parse, parse_for_slow_lane
from tamis.limits import DEFAULT_LIMITS, Limits

log = logging.getLogger("tamis")

Unsupported = Literal["refuse", "slow"]
SubscriptionItems = (
    Mapping[str, str]
    | Mapping[int, str]
    | Mapping[SubscriptionId, str]
    | Iterable[tuple[SubscriptionId, str]]
)
"""What makes a set: id → expression, or pairs of these."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription.

    Attributes:
        id: unique in its set.
        expression: the text as it was given.
        query: its meaning, or None where it goes through the slow lane.
        absolute: for the slow lane, the expression with its context written into it.
    """

    id: SubscriptionId
    expression: str
    query: Query | None
    absolute: str | None = None


class Subscriptions:
    """A set of subscriptions, parsed; its order is the order of the results.

    Args:
        items: id → expression, or (id, expression) pairs. Ids are str or int and keep their type.
        namespaces: prefix → URI for the prefixes used in the expressions.
        unsupported: ``"refuse"`` makes valid XPath outside the streamed fragment an error;
            ``"slow"`` sends those, and only those, through lxml, document by document.
        skip_bad: leave bad subscriptions out and keep their errors in ``errors``.
        limits: bounds on each expression.

    Raises:
        BadSubscriptions: some cannot be used; it lists all of them.

    >>> subscriptions = Subscriptions({"cheap": "//order[total < 10]", "any": "//order"})
    >>> list(subscriptions.ids)
    ['cheap', 'any']
    >>> Subscriptions({"odd": "//order["})
    Traceback (most recent call last):
    tamis.errors.BadSubscriptions: 1 bad subscription
    subscription 'odd': expected a path, a literal or a function, found the end
      //order[
              ^
    """

    def __init__(
        self,
        items: SubscriptionItems,
        *,
        namespaces: Mapping[str, str] | None = None,
        unsupported: Unsupported = "refuse",
        skip_bad: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        pairs = items.items() if isinstance(items, Mapping) else items
        self._fill(
            ((None, *_checked_pair(pair)) for pair in pairs),
            namespaces,
            unsupported,
            skip_bad,
            limits,
        )

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        namespaces: Mapping[str, str] | None = None,
        unsupported: Unsupported = "refuse",
        skip_bad: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Subscriptions:
        """Read ``id<TAB>expression`` lines, or ``{"id", "expression"}`` objects from ``*.ndjson``.

        In a text file ``#`` comments and blank lines are skipped, and a line without a tab is an
        expression whose id is its line number.

        Raises:
            UsageError: the file cannot be read.
            BadSubscriptions: some lines cannot be used; it lists all of them, with their lines.
        """
        path = Path(path)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:  # a NUL in the path
            raise UsageError(f"cannot read {str(path)!r}: {error}") from None
        read_line = _read_json_line if path.suffix == ".ndjson" else _read_text_line
        lines = enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1)
        result = cls.__new__(cls)
        result._fill(
            (
                found
                for number, line in lines
                if (found := read_line(number, line.removesuffix(b"\r"))) is not None
            ),
            namespaces,
            unsupported,
            skip_bad,
            limits,
        )
        return result

    def _fill(
        self,
        entries: Iterable[_Entry],
        namespaces: Mapping[str, str] | None,
        unsupported: Unsupported,
        skip_bad: bool,
        limits: Limits,
    ) -> None:
        if unsupported not in ("refuse", "slow"):
            raise UsageError(f"unsupported={unsupported!r}: write 'refuse' or 'slow'")
        self.namespaces = _checked_namespaces(namespaces or {})
        self.limits = limits
        self.entries: list[Subscription] = []
        errors: list[SubscriptionError] = []
        first_line: dict[SubscriptionId, int | None] = {}
        parsed: dict[str, tuple[Query | None, str | None]] = {}
        for line, id, expression in entries:
            if isinstance(expression, SubscriptionError):
                errors.append(expression.located(id, line))
                continue
            try:
                _check_id(id, first_line)
                if expression not in parsed:
                    parsed[expression] = self._parse(expression, unsupported)
            except SubscriptionError as error:
                errors.append(error.located(id, line))
                continue
            finally:
                first_line.setdefault(id, line)
            query, absolute = parsed[expression]
            if query is not None and isinstance(query.expression, Constant):
                always = "true" if query.expression.value else "false"
                log.warning("subscription %r is always %s: %s", id, always, expression)
            self.entries.append(Subscription(id, expression, query, absolute))
        self.errors = tuple(errors)
        if errors and not skip_bad:
            raise BadSubscriptions(self.errors)

    def _parse(self, expression: str, unsupported: Unsupported) -> tuple[Query | None, str | None]:
        try:
            return parse(expression, self.namespaces, self.limits), None
        except UnsupportedExpression:
            if unsupported == "refuse":
                raise
        return None, parse_for_slow_lane(expression, self.namespaces, self.limits)

    def with_entries(self, entries: list[Subscription]) -> Subscriptions:
        """A set of parsed subscriptions with the same namespaces and limits, and no errors."""
        result = copy.copy(self)
        result.entries = entries
        result.errors = ()
        return result

    @property
    def ids(self) -> tuple[SubscriptionId, ...]:
        """The ids, in order."""
        return tuple(entry.id for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, id: object) -> bool:
        return any(entry.id == id for entry in self.entries)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self.entries)

    def __repr__(self) -> str:
        return f"<Subscriptions: {len(self.entries):,}>"


# What an editor makes of "id<TAB>//path" where it writes spaces for tabs.
_SPACED = re.compile(r"([^\s/\[\]()@*|'\"=<>!,$:.]+) +/")

_Entry = tuple[int | None, SubscriptionId, str | SubscriptionError]


def _checked_pair(pair: object) -> tuple[SubscriptionId, str]:
    match pair:
        case (str() | int() as id, str() as expression) if not isinstance(id, bool):
            return id, expression
    raise UsageError(
        "a subscription is a pair of an id (str or int) and an expression (str), as in "
        f"{{id: expression}}, not {pair!r:.200}"
    )


def _check_id(id: SubscriptionId, first_line: Mapping[SubscriptionId, int | None]) -> None:
    if id in first_line:
        line = first_line[id]
        where = f", first in line {line}" if line is not None else ""
        raise SubscriptionIdError(f"the id is used twice{where}: ids must be unique")
    if isinstance(id, str) and not id:
        raise SubscriptionIdError("the id is empty")
    if isinstance(id, str) and not id.isprintable():
        raise SubscriptionIdError(
            "the id has a tab, a newline or another character that cannot be printed"
        )


def _checked_namespaces(namespaces: Mapping[Any, Any]) -> dict[str, str]:
    for prefix, uri in namespaces.items():
        if not isinstance(prefix, str) or not isinstance(uri, str):
            raise UsageError(f"not a namespace declaration: {prefix!r} → {uri!r}")
        if not prefix:
            raise UsageError(
                "a default namespace does not apply to XPath 1.0 names: declare it with a prefix"
            )
        if not is_ncname(prefix) or not uri or (prefix == "xml" and uri != XML_NAMESPACE):
            raise UsageError(f"not a namespace declaration: {prefix!r} → {uri!r}")
    return dict(namespaces)


def read_namespaces(path: str | Path) -> dict[str, str]:
    """Read ``prefix<TAB>URI`` lines (any white space); ``#`` comments and blank lines are skipped.

    Raises:
        UsageError: the file cannot be read, or a line is not a declaration.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}") from None
    except ValueError as error:  # a NUL in the path
        raise UsageError(f"cannot read {str(path)!r}: {error}") from None
    namespaces: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = line.split()
        if len(fields) != 2 or fields[0] in namespaces:
            raise UsageError(f"{path}, line {number}: expected a new prefix and its URI")
        namespaces[fields[0]] = fields[1]
    return _checked_namespaces(namespaces)


def _read_text_line(number: int, line: bytes) -> _Entry | None:
    if not line.strip() or line.startswith(b"#"):
        return None
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return number, str(number), SubscriptionSyntaxError(f"the line is not UTF-8: {error}")
    id, tab, expression = text.partition("\t")
    if tab:
        return number, id, expression
    spaced = _SPACED.match(text)
    if spaced is None:
        return number, str(number), text
    # As XPath it would be a path that begins with the id, and never be true.
    return (
        number,
        str(number),
        SubscriptionSyntaxError(
            "an id and its expression are divided by a tab, and this line has none",
            text,
            spaced.end(1),
            hint="put a tab here; or, if it is all one path, take the space away",
        ),
    )


def _read_json_line(number: int, line: bytes) -> _Entry | None:
    if not line.strip():
        return None
    try:
        id, expression = _checked_pair(_id_and_expression(json.loads(line)))
    except (ValueError, RecursionError) as error:
        return number, str(number), SubscriptionSyntaxError(f"the line is not JSON: {error}")
    except (KeyError, TypeError, UsageError):
        return (
            number,
            str(number),
            SubscriptionSyntaxError('expected an object {"id": …, "expression": "…"}'),
        )
    return number, id, expression


def _id_and_expression(value: dict[str, object]) -> tuple[object, object]:
    return value["id"], value["expression"]
