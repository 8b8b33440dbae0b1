"""The distinct queries of a set of subscriptions: what engines compile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.model import Query
from tamis.language.plain import ANCHOR, KIND_BITS, NO_PLAIN_QUERIES, PlainQueries
from tamis.language.xpath import parse


class Queries(Sequence[Query]):
    """Queries; those that are plain have the first numbers, and become objects when asked for.

    Attributes:
        plain: the plain ones, as arrays.
        others: the others.
        texts: expressions, all of the set.

    Args:
        examples: for each plain query, which of the texts says it.
        namespaces, limits: what these are read with.

    >>> queries = Queries.of([parse("//a"), parse("//b")])
    >>> len(queries), len(queries.plain), queries[1] == parse("//b")
    (2, 0, True)
    """

    def __init__(
        self,
        plain: PlainQueries,
        others: Sequence[Query],
        texts: Sequence[str],
        examples: NDArray[np.int32],
        namespaces: Mapping[str, str],
        limits: Limits,
    ) -> None:
        assert len(plain) == len(examples)
        self.plain = plain
        self.others = others
        self.texts = texts
        self._examples = examples
        self._namespaces = namespaces
        self._limits = limits

    @classmethod
    def of(cls, queries: Sequence[Query]) -> Queries:
        """Queries that were parsed; others than these of one's own stay as they are."""
        if isinstance(queries, Queries):
            return queries
        return cls(NO_PLAIN_QUERIES, tuple(queries), (), _NONE, {}, DEFAULT_LIMITS)

    @classmethod
    def written(
        cls,
        texts: Sequence[str],
        examples: NDArray[np.int32],
        namespaces: Mapping[str, str],
        limits: Limits,
    ) -> Queries:
        """Queries of which only texts are known; each is parsed when it is asked for.

        Args:
            examples: for each query, which of the texts says it.

        >>> queries = Queries.written(["//a", "//b", "//a"], np.array([0, 1]), {}, DEFAULT_LIMITS)
        >>> len(queries), queries[1] == parse("//b")
        (2, True)
        """
        others = _Written(texts, examples, namespaces, limits)
        return cls(NO_PLAIN_QUERIES, others, texts, _NONE, namespaces, limits)

    def part(self, with_plain: bool, others: NDArray[np.integer[Any]]) -> Queries:
        """All plain ones or none, and of the others those of some numbers, counted from 0."""
        chosen: Sequence[Query]
        if isinstance(self.others, _Written):
            chosen = self.others.part(others)
        else:
            chosen = [self.others[number] for number in others.tolist()]
        if not with_plain:
            return Queries(NO_PLAIN_QUERIES, chosen, (), _NONE, {}, DEFAULT_LIMITS)
        return Queries(
            self.plain, chosen, self.texts, self._examples, self._namespaces, self._limits
        )

    def __len__(self) -> int:
        return len(self.plain) + len(self.others)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Query, ...]: ...
    def __getitem__(self, index: int | slice) -> Query | tuple[Query, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        number = range(len(self))[index]
        if number >= len(self.plain):
            return self.others[number - len(self.plain)]
        return self._plain(number)

    def known(self, number: int) -> Query | None:
        """A query, if it is an object already; else it is parsed when it is asked for."""
        other = number - len(self.plain)
        return None if other < 0 or isinstance(self.others, _Written) else self.others[other]

    def __iter__(self) -> Iterator[Query]:
        yield from map(self._plain, range(len(self.plain)))
        yield from self.others

    def is_path(self, number: int) -> bool:
        """Whether a plain query has no predicates: nothing is between its anchor and the END."""
        start, end = self.plain.starts[number : number + 2].tolist()
        words = self.plain.code[start:end]
        return bool(np.argmax(words >> KIND_BITS & ANCHOR != 0) == len(words) - 2)

    def _plain(self, number: int) -> Query:
        return self.parse(self.texts[self._examples[number]])

    def parse(self, text: str) -> Query:
        """The meaning of one of the texts."""
        return parse(text, self._namespaces, self._limits)

    def __repr__(self) -> str:
        return f"<Queries: {len(self):,}>"


class _Written(Sequence[Query]):
    """Queries that are parsed each time they are asked for."""

    def __init__(
        self,
        texts: Sequence[str],
        examples: NDArray[np.int32],
        namespaces: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self._texts = texts
        self._examples = examples
        self._namespaces = namespaces
        self._limits = limits

    def part(self, numbers: NDArray[np.integer[Any]]) -> _Written:
        """Some of them."""
        return _Written(self._texts, self._examples[numbers], self._namespaces, self._limits)

    def __len__(self) -> int:
        return len(self._examples)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Query, ...]: ...
    def __getitem__(self, index: int | slice) -> Query | tuple[Query, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(*index.indices(len(self))))
        return parse(self._texts[self._examples[index]], self._namespaces, self._limits)


_NONE = np.zeros(0, np.int32)
