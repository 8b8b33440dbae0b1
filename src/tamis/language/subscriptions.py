"""Sets of subscriptions: ids and expressions, from Python, from text files and from NDJSON."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arguments import checked_limits, checked_path, is_one_of
from tamis.core.arrays import Int32
from tamis.core.errors import BadSubscriptions, SubscriptionId, UsageError
from tamis.core.index.columns import Ids, Texts
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import declared_namespaces
from tamis.language.entries import (
    Entries,
    SubscriptionItems,
    file_bytes,
    file_entries,
    given_entries,
)
from tamis.language.model import Query
from tamis.language.queries import ParseOptions, Progress, Queries, read_entries
from tamis.language.xpath import Unsupported

__all__ = ["Columns", "Subscription", "SubscriptionItems", "Subscriptions", "Unsupported"]


class Subscription:
    """One subscription: its id, unique in its set, and the expression as it was given."""

    __slots__ = ("_query", "expression", "id")

    def __init__(
        self, id: SubscriptionId, expression: str, query: Query | Callable[[], Query]
    ) -> None:
        self.id = id
        self.expression = expression
        self._query = query

    def _parsed(self) -> Query:
        if callable(self._query):
            self._query = self._query()
        return self._query

    @property
    def query(self) -> Query | None:
        """Its meaning; None where it is outside the streamed fragment."""
        query = self._parsed()
        return query if query.unstreamed is None else None

    @property
    def absolute(self) -> str | None:
        """Outside the streamed fragment, the expression with its context written into it."""
        return self._parsed().unstreamed

    @property
    def parsed(self) -> Query | None:
        """Its meaning, if it was asked for before."""
        return None if callable(self._query) else self._query

    def __reduce__(self) -> tuple[Any, ...]:
        return Subscription, (self.id, self.expression, self._parsed())

    def __repr__(self) -> str:
        return f"Subscription({self.id!r}, {self.expression!r})"


class Columns(NamedTuple):
    """A set of subscriptions as columns."""

    ids: Ids
    texts: Texts
    query_numbers: Int32


class Subscriptions:
    """A set of subscriptions, parsed; its order is the order of the results.

    Args:
        items: id → expression, (id, expression) pairs, or the :class:`pathlib.Path` of a file, as
            for :meth:`from_file`. Ids are str or int and keep their type.
        namespaces: prefix → URI for the prefixes used in the expressions.
        default_namespace: the namespace of elements that expressions name without a prefix, as in
            XPath 2.0; by default they are in none. Attributes without a prefix are always in none.
        unsupported: ``"refuse"`` makes valid XPath outside the streamed fragment an error;
            ``"slow"`` sends those, and only those, through lxml, document by document.
        skip_bad: leave bad subscriptions out and keep their errors in ``errors``.
        limits: bounds on each expression.

    Attributes:
        ids: the ids, in order.
        queries: the distinct queries.
        query_numbers: the number of each subscription's query.
        options: how the expressions were read.
        errors: those of bad subscriptions that were skipped.

    Raises:
        BadSubscriptions: some cannot be used; it lists all of them.

    >>> subscriptions = Subscriptions({"cheap": "//order[total < 10]", "any": "//order"})
    >>> list(subscriptions.ids)
    ['cheap', 'any']
    >>> Subscriptions({"odd": "//order["})
    Traceback (most recent call last):
    tamis.core.errors.BadSubscriptions: 1 bad subscription
    subscription 'odd': expected a path, a literal or a function, found the end
      //order[
              ^
    """

    def __init__(
        self,
        items: SubscriptionItems,
        *,
        namespaces: Mapping[str, str] | None = None,
        default_namespace: str | None = None,
        unsupported: Unsupported = "refuse",
        skip_bad: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        declared = declared_namespaces(namespaces, default_namespace)
        self._fill(given_entries(items), ParseOptions(declared, unsupported, limits), skip_bad)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        namespaces: Mapping[str, str] | None = None,
        default_namespace: str | None = None,
        unsupported: Unsupported = "refuse",
        skip_bad: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        progress: Progress | None = None,
    ) -> Subscriptions:
        """Read ``id<TAB>expression`` lines, or ``{"id", "expression"}`` objects from ``*.ndjson``.

        In a text file ``#`` comments and blank lines are skipped, and a line without a tab is an
        expression whose id is its line number. ``progress`` is called now and then, with how many
        expressions were read, and of how many; the other arguments are those of the class.

        Raises:
            UsageError: the file cannot be read.
            BadSubscriptions: some lines cannot be used; it lists all of them, with their lines.
        """
        result = cls.__new__(cls)
        declared = declared_namespaces(namespaces, default_namespace)
        entries = file_entries(path)
        result._fill(entries, ParseOptions(declared, unsupported, limits), skip_bad, progress)
        return result

    def _fill(
        self,
        entries: Entries,
        options: ParseOptions,
        skip_bad: bool,
        progress: Progress | None = None,
    ) -> None:
        if not is_one_of(options.unsupported, ("refuse", "slow")):
            raise UsageError(f"unsupported={options.unsupported!r}: write 'refuse' or 'slow'")
        self.options = options._replace(limits=checked_limits(options.limits))
        self._read(entries, {}, progress)
        if self.errors and not skip_bad:
            raise BadSubscriptions(self.errors)

    def _read(
        self,
        entries: Entries,
        known: Mapping[str, Query],
        progress: Progress | None = None,
        warns: bool = True,
    ) -> None:
        kept, self.queries, self.query_numbers, self.errors = read_entries(
            entries, self.options, known, progress, warns
        )
        self.ids: Ids = entries.ids.part(kept).compact()

    def with_entries(
        self, entries: Sequence[Subscription], before: Sequence[tuple[Ids, Texts]] = ()
    ) -> Subscriptions:
        """A set of subscriptions with the same namespaces and limits; nothing is told of odd ones.

        Args:
            before: ids and expressions that are before the entries.

        Raises:
            BadSubscriptions: some cannot be used.
        """
        result = copy.copy(self)
        known = {each.expression: query for each in entries if (query := each.parsed) is not None}
        ids = Ids.joined([*(each for each, _ in before), Ids.of(entry.id for entry in entries)])
        own = Texts.of(entry.expression for entry in entries)
        texts = Texts.joined([*(each for _, each in before), own])
        result._read(Entries(ids, texts, None, []), known, warns=False)
        if result.errors:
            raise BadSubscriptions(result.errors)
        return result

    @classmethod
    def of_columns(cls, columns: Columns, examples: Int32, options: ParseOptions) -> Subscriptions:
        """A set that was read before and written down; it has no errors.

        Each expression is read again when it is asked for: ``examples`` has a subscription that
        asks it, for each query. Errors are of the namespaces.
        """
        prefixes = dict(options.namespaces)
        default = prefixes.pop("", None)
        options = options._replace(namespaces=declared_namespaces(prefixes, default))
        result = cls.__new__(cls)
        result.options = options
        result.ids, texts, result.query_numbers = columns
        result.queries = Queries(texts, examples, options)
        result.errors = ()
        return result

    @property
    def columns(self) -> Columns:
        """What ``of_columns`` makes the same set of."""
        texts = self.queries.texts
        assert isinstance(texts, Texts)
        return Columns(self.ids, texts, self.query_numbers)

    @property
    def namespaces(self) -> Mapping[str, str]:
        """Prefix → URI, as they were given."""
        return {prefix: uri for prefix, uri in self.options.namespaces.items() if prefix}

    @property
    def default_namespace(self) -> str | None:
        """The namespace of elements that expressions name without a prefix; None for none."""
        return self.options.namespaces.get("")

    @property
    def limits(self) -> Limits:
        """The bounds on each expression."""
        return self.options.limits

    @property
    def slow(self) -> list[Subscription]:
        """Those outside the streamed fragment, which lxml evaluates."""
        is_slow = np.isin(self.query_numbers, self.queries.unstreamed)
        return [self.subscription(number) for number in np.flatnonzero(is_slow).tolist()]

    def find(self, id: SubscriptionId) -> Subscription | None:
        """The subscription with an id, or None."""
        number = self.ids.find(id)
        return None if number < 0 else self.subscription(number)

    def subscription(self, number: int) -> Subscription:
        """The subscription of a number."""
        return self._made(number, self.ids[number], self.queries.texts[number])

    def _made(self, number: int, id: SubscriptionId, expression: str) -> Subscription:
        query, queries = int(self.query_numbers[number]), self.queries
        known = queries.known(query)
        if known is not None and queries.texts[queries.examples[query]] == expression:
            return Subscription(id, expression, known)
        return Subscription(id, expression, partial(queries.parse, expression))

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: object) -> bool:
        return id in self.ids

    def __iter__(self) -> Iterator[Subscription]:
        return map(self._made, range(len(self)), self.ids, self.queries.texts)

    def __repr__(self) -> str:
        return f"<Subscriptions: {len(self):,}>"


def as_subscriptions(
    given: Subscriptions | SubscriptionItems,
    *,
    namespaces: Mapping[str, str] | None,
    default_namespace: str | None,
    unsupported: Unsupported,
    skip_bad: bool = False,
    limits: Limits | None = None,
) -> Subscriptions:
    """A set that is given, without options, or what makes one, parsed."""
    if isinstance(given, Subscriptions):
        check_not_given(namespaces, default_namespace, unsupported)
        return given
    return Subscriptions(
        given,
        namespaces=namespaces,
        default_namespace=default_namespace,
        unsupported=unsupported,
        skip_bad=skip_bad,
        limits=checked_limits(limits),
    )


def check_not_given(
    namespaces: Mapping[str, str] | None, default_namespace: str | None, unsupported: Unsupported
) -> None:
    """See that there are no options for subscriptions that are parsed already."""
    if (namespaces, default_namespace, unsupported) != (None, None, "refuse"):
        raise UsageError(
            "namespaces, default_namespace and unsupported are for Subscriptions: these are parsed "
            "already"
        )


def read_namespaces(path: str | Path) -> dict[str, str]:
    """Read ``prefix<TAB>URI`` lines; ``#`` comments and blank lines are skipped."""
    try:
        text = file_bytes(checked_path(path)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}") from None
    namespaces: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fields = line.split()
        if len(fields) != 2:
            raise UsageError(f"{path}, line {number}: expected a prefix, a space and its URI")
        prefix, uri = fields
        if prefix in namespaces:
            before = f"the prefix '{prefix}' is declared before, as {namespaces[prefix]}"
            raise UsageError(f"{path}, line {number}: {before}")
        namespaces[prefix] = uri
    return declared_namespaces(namespaces)
