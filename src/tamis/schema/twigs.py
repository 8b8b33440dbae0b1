"""The words of whole queries pruned with a DTD: twigs, their predicates, unions.

A path is cut at its *split nodes*, where a level has more than one item. Each piece is a linear
filter, pruned for itself; each filter that it becomes ends at another element, and for that element
the items of the level are pruned. So trunk and branches stay together: ``//a[*/d]//e`` becomes
``/a[b/d or c/d]/…`` and not two filters that may be true at different elements.

(The paper says that the linear parts of a twig can be pruned independently of each other: they
could then be true at different elements.)

Positions, counts and the first of several nodes depend on all nodes that a step reaches. So a step
with a position, or of a path that is counted, changes only where a single filter comes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from tamis.core.arrays import freeze, starts_of
from tamis.language import table as t
from tamis.language.filters import Codes, Labels, has_label
from tamis.language.model import NodeTest
from tamis.language.table import QueryTable
from tamis.schema.prune import ROOT, Pruner, Reached, TooManyError

Item = tuple[int, ...]
"""The words of an item of a level."""
Items = tuple[Item, ...]
"""Items that all have to hold; of none, that is always so."""
_OF_VALUE = t.FIRST | t.COUNTED
_MAIN = t.MAIN << t.KIND_BITS


def prune_queries(table: QueryTable, pruner: Pruner) -> QueryTable:
    """Queries that are true of the same documents, as far as these are of the DTD.

    Which nodes they select is lost: steps are not ``MAIN``. A query that would become more than the
    heuristics allow is pruned with care, or else left as it is.

    >>> from tamis.language.lower import lowered
    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> pruner = Pruner(SchemaGraph.of(parse_dtd('<!ELEMENT a (b, c)> <!ELEMENT b (d)> '
    ...     '<!ELEMENT c (d)> <!ELEMENT d EMPTY>')))
    >>> found = prune_queries(lowered([parse("//*[d][not(b)]")]), pruner)
    >>> [pruner.labels.written(codes) for codes in next(pruner.labels.each(found))]
    ['/a/b/d', '/a/c/d']
    """
    tests = {test: number for number, test in enumerate(table.tests)}
    codes = [_pruned(table, number, tests, pruner) for number in range(len(table))]
    starts, code = starts_of([*map(len, codes)]), np.array([*chain.from_iterable(codes)], np.int32)
    freeze(starts, code)
    return QueryTable(starts, code, tuple(tests), *table[3:])


Tests = dict[tuple[bool, NodeTest], int]


def _pruned(table: QueryTable, number: int, tests: Tests, pruner: Pruner) -> Item:
    try:
        return _Twig(table, number, tests, pruner).pruned()
    except (TooManyError, RecursionError):  # it may have hundreds of split nodes behind each other
        if pruner.careful is not pruner:
            return _pruned(table, number, tests, pruner.careful)
        is_possible = failure_of(table, number, pruner) is None
        return tuple(table.words(number)) if is_possible else (t.ANY, t.END)


class _Twig:
    """Prunes the words of one query, as long as they stay within the heuristics' bounds.

    What an item becomes are alternatives, of which one has to hold: none if it is never true.
    """

    def __init__(self, table: QueryTable, number: int, tests: Tests, pruner: Pruner) -> None:
        self.pruner = pruner
        self._paths_left = pruner.heuristics.filters_max
        self._steps_left = pruner.heuristics.steps_max
        self._tests = tests
        self._codes: dict[int, int] = {}  # of the steps
        self._words = tuple(
            word & ~_MAIN if word & t.KIND_MASK == t.STEP else word for word in table.words(number)
        )
        self._behind: dict[int, int] = {}  # of each place at which an item begins
        self._counted: set[int] = set()  # the steps that have a position
        begun: list[int] = []
        for place, word in enumerate(self._words):
            kind = word & t.KIND_MASK
            if kind == t.STEP:
                self._codes[place] = _code_of(word, table, pruner.labels)
            if kind <= t.NOT:
                begun.append(place)
            elif kind == t.END:
                self._behind[begun.pop()] = place + 1
            elif kind != t.LITERAL:
                self._behind[place] = place + 1 + (kind == t.COMPARE)
                if kind == t.NTH:
                    self._counted.add(begun[-1])

    def pruned(self) -> Item:
        found = _joined(self._items(0, len(self._words), ROOT))
        return tuple(chain.from_iterable(found)) or (t.ALL, t.END)

    def _places(self, place: int, end: int) -> Iterator[int]:
        while place < end:
            yield place
            place = self._behind[place]

    def _items(self, start: int, end: int, reached: Reached, of_value: bool = False) -> list[Items]:
        """What the items between two places become, at what was reached, if all have to hold."""
        found: list[list[Items]] = []
        for place in self._places(start, end):
            is_value = of_value and self._behind[place] == end
            alternatives = self._item(place, reached, is_value)
            if not alternatives:
                return []
            if () not in alternatives:
                found.append(alternatives)
        return found[0] if len(found) == 1 else [tuple(chain.from_iterable(map(_joined, found)))]

    def _item(self, place: int, reached: Reached, of_value: bool) -> list[Items]:
        start, end = place + 1, self._behind[place] - 1
        match self._words[place] & t.KIND_MASK:
            case t.STEP:
                return self._step(place, reached, of_value)
            case t.ALL:
                return self._items(start, end, reached)
            case t.ANY:
                found = (self._item(each, reached, False) for each in self._places(start, end))
                return list(dict.fromkeys(chain.from_iterable(found)))
            case t.NOT:
                inner = self._items(start, end, reached)
                if () in inner:
                    return []
                return [((t.NOT, *chain(*_joined(inner)), t.END),)] if inner else [()]
        return [(self._words[place : self._behind[place]],)]

    def _step(self, place: int, reached: Reached, of_value: bool) -> list[Items]:
        """What a step becomes, with the steps behind it up to a split node."""
        as_it_is = self._words[place : self._behind[place]]
        flags = self._words[place] >> t.KIND_BITS & _OF_VALUE
        of_value |= flags > 0
        codes: Codes = (self._codes[place],)
        last = place
        if codes[0] < 0:
            return [(as_it_is,)]
        while (code := self._code_of_only(last, flags & t.COUNTED)) >= 0:
            codes, last = (*codes, code), last + 1
        exists = self._behind[last] == last + 2
        filters = self.pruner.prune(codes, reached, existence_only=exists)
        if len(filters) > 1 and place in self._counted:
            filters = (codes,)
        found = self._led_to(filters, flags, last, reached, of_value)
        if len(found) > 1 and of_value:
            found = self._led_to((codes,), flags, last, reached, of_value)
        return found if found or not flags else [(as_it_is,)]

    def _led_to(
        self, filters: tuple[Codes, ...], flags: int, last: int, reached: Reached, of_value: bool
    ) -> list[Items]:
        """What some filters become with the items of the level that they lead to."""
        found: dict[Items, None] = {}
        for codes in filters:
            steps = (*self._steps(codes, flags),)
            end = self.pruner.end(codes, reached)
            for items in self._items(last + 1, self._behind[last] - 1, end, of_value):
                self._paths_left -= 1
                self._steps_left -= len(codes)
                if min(self._paths_left, self._steps_left) < 0:
                    raise TooManyError
                found[(*steps, *chain(*items), *[t.END] * len(codes)),] = None
        return list(found)

    def _code_of_only(self, place: int, flags: int) -> int:
        """The code of a step that is the only item of the level at a place; or -1."""
        inner = place + 1
        is_only = self._behind.get(inner) == self._behind[place] - 1 and inner not in self._counted
        is_same = self._words[inner] >> t.KIND_BITS & _OF_VALUE == flags
        return self._codes.get(inner, -1) if is_only and is_same else -1

    def _steps(self, codes: Codes, flags: int) -> Iterator[int]:
        """The words of the steps of a filter; all of them are counted, or the first has flags."""
        for code in codes:
            test = False, self.pruner.labels.test(code >> 1)
            number = self._tests.setdefault(test, len(self._tests))
            below = t.DESCENDANT if code & 1 else 0
            yield t.STEP | (number << t.TEST_SHIFT | flags | below) << t.KIND_BITS
            flags &= t.COUNTED


def _joined(alternatives: list[Items]) -> Items:
    """Alternatives as items that all have to hold: of a single one, its items."""
    if len(alternatives) == 1:
        return alternatives[0]
    each = (
        items if len(items) == 1 else ((t.ALL, *chain(*items), t.END),) for items in alternatives
    )
    return ((t.ANY, *chain(*chain(*each)), t.END),)


def _code_of(word: int, table: QueryTable, labels: Labels) -> int:
    """The code of a step to children or descendants that a filter may have; -1 for others."""
    flags = word >> t.KIND_BITS
    is_attribute, test = table.tests[flags >> t.TEST_SHIFT]
    if is_attribute or flags & t.SELF or not has_label(test):
        return -1
    return labels.of_test(test) << 1 | (flags & t.DESCENDANT > 0)


# -- consistency -----------------------------------------------------------------------------------


def failure_of(table: QueryTable, number: int, pruner: Pruner) -> str | None:
    """Why a query can never be true of a document of the DTD, in words, if that is known.

    >>> from tamis.language.lower import lowered
    >>> from tamis.language.xpath import parse
    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT book (title)> <!ELEMENT title (#PCDATA)>"))
    >>> failure_of(lowered([parse("//book[title/book]")]), 0, Pruner(graph))
    'book is never a child of title'
    """
    # Each level and group that has begun: its kind, what was reached, and why its items fail.
    # What steps to attributes reach is not known, nor what those of values do.
    begun: list[tuple[int, Reached | None, list[str | None]]] = [(t.ALL, ROOT, [])]
    for word in table.words(number):
        kind, (of_kind, reached, reasons) = word & t.KIND_MASK, begun[-1]
        if kind == t.END:
            begun.pop()
            begun[-1][2].append(_joined_reason(of_kind, reasons))
        elif kind == t.COMPARE:
            reasons.append(None)
        elif kind == t.STEP and reached is not None:
            code = _code_of(word, table, pruner.labels)
            if code < 0 or word >> t.KIND_BITS & _OF_VALUE:
                begun.append((kind, None, []))
            else:
                reason, reached = pruner.failure((code,), reached), pruner.end((code,), reached)
                begun.append((kind, reached, [reason]))
        elif kind <= t.NOT:
            begun.append((kind, reached, []))
    return _joined_reason(t.ALL, begun[0][2])


def _joined_reason(kind: int, reasons: list[str | None]) -> str | None:
    """Why a level or group can never be true, by the reasons of its items."""
    known = dict.fromkeys(reason for reason in reasons if reason is not None)
    if kind == t.ANY:
        return None if None in reasons or not known else "; ".join(known)
    return next(iter(known), None) if kind != t.NOT else None
