"""Syntax trees → the words of a :class:`~tamis.language.table.QueryTable`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

import numpy as np

from tamis.core.arrays import freeze
from tamis.language import model as m
from tamis.language import table as t
from tamis.language.table import QueryTable
from tamis.language.values import compare, compare_string

Words = list[int]


_WORDS_MAX = 1 << 14


class _TooManyError(Exception):
    """A query takes too many words."""


class Lowering:
    """Collects the words of queries, after those of ``before``; each distinct one once.

    A query outside the streamed fragment has no words.

    >>> from tamis.language.xpath import parse
    >>> lowering = Lowering()
    >>> [lowering.add(parse(text)) for text in ("//a[b]/c", "//a[b][c]", "/descendant::a[b]/c")]
    [0, 1, 0]
    """

    def __init__(self, before: QueryTable = t.NO_QUERIES) -> None:
        self._before = before
        self._queries: dict[object, int] = {}
        self._codes: list[tuple[int, ...]] = []
        self._tests = {test: number for number, test in enumerate(before.tests)}
        self._strings = {string: number for number, string in enumerate(before.strings())}
        self._numbers = {number: place for place, number in enumerate(before.numbers.tolist())}
        self._code: Words = []
        self._words_max: int | None = None

    def add(self, query: m.Query) -> int:
        """The number of a query."""
        number = len(self._before) + len(self._codes)
        words = self._words(query)
        found = self._queries.setdefault(words or query, number)
        if found == number:
            self._codes.append(words)
        return found

    def append(self, query: m.Query) -> None:
        """Add a query, though one with the same words may be there."""
        self._codes.append(self._words(query))

    def _words(self, query: m.Query) -> tuple[int, ...]:
        if query.unstreamed is not None:
            return ()
        try:
            return self._written(query, _WORDS_MAX)
        except _TooManyError:  # positions repeat what is behind them: nested, again and again
            return self._written(query, None)

    def _written(self, query: m.Query, words_max: int | None) -> tuple[int, ...]:
        """The words of a query; without a bound, no first node is written as positions."""
        self._code, self._words_max = [], words_max
        expression = query.expression
        if isinstance(expression, m.Exists) and query.selects:
            self._any([partial(self._path, each, t.MAIN) for each in _distinct(expression.paths)])
        else:
            self._items(expression)
        return tuple(self._code)

    def table(self) -> QueryTable:
        """All that was added, behind the queries that were there before."""
        strings = list(self._strings)
        sizes = [*map(len, self._codes)]
        starts = np.cumsum([self._before.starts[-1], *sizes], dtype=np.int64)
        code = np.fromiter(chain.from_iterable(self._codes), np.int32, sum(sizes))
        result = QueryTable(
            starts=np.concatenate([self._before.starts[:-1], starts]),
            code=np.concatenate([self._before.code, code]),
            tests=tuple(self._tests),
            string_starts=np.cumsum([0, *map(len, strings)], dtype=np.int64),
            string_bytes=np.frombuffer(b"".join(strings), np.uint8).copy(),
            numbers=np.array(list(self._numbers), np.float64),
        )
        freeze(*(array for array in result if isinstance(array, np.ndarray)))
        return result

    def _emit(self, kind: int, payload: int = 0) -> None:
        if self._words_max is not None and len(self._code) > self._words_max:
            raise _TooManyError
        self._code.append(kind | payload << t.KIND_BITS)

    # -- expressions -----------------------------------------------------------------------------

    def _items(self, expression: m.Expression) -> None:
        """Write what has to hold, as items of a level or group in which all do."""
        match expression:
            case m.And(operands):
                for operand in operands:
                    self._items(operand)
            case m.Not(operand):
                self._group(t.NOT, operand)
            case m.Constant(value):
                self._emit(t.ALL if value else t.ANY)
                self._emit(t.END)
            case _:
                self._any(list(self._alternatives(expression)))

    def _group(self, kind: int, expression: m.Expression) -> None:
        self._emit(kind)
        self._items(expression)
        self._emit(t.END)

    def _any(self, alternatives: list[Callable[[], None]]) -> None:
        """Write a group of items of which one has to hold; of a single one, the item itself."""
        if len(alternatives) != 1:
            self._emit(t.ANY)
        for write in alternatives:
            write()
        if len(alternatives) != 1:
            self._emit(t.END)

    def _alternatives(self, expression: m.Expression) -> Iterator[Callable[[], None]]:
        """What writes each of the items of which one has to hold."""
        match expression:
            case m.Or(operands):
                for operand in operands:
                    yield from self._alternatives(operand)
            case m.Exists(paths):
                for steps in _distinct(paths):
                    yield partial(self._path, steps)
            case m.Compare(operator, m.Nodes(paths), literal):
                for steps in _distinct(paths):
                    yield partial(self._path, steps, asked=self._asked(operator, literal))
            case m.Compare(operator, value, literal):
                yield from self._of_value(value, operator, literal)
            case m.Contains(text, literal):
                yield from self._of_value(text, "contains", literal)
            case m.StartsWith(text, literal):
                yield from self._of_value(text, "starts-with", literal)
            case m.And():
                yield partial(self._group, t.ALL, expression)
            case _:
                yield partial(self._items, expression)

    def _of_value(
        self, value: m.Value, operator: str, literal: str | float
    ) -> Iterator[Callable[[], None]]:
        """What writes that the value of a path, after functions, is as asked."""
        functions = 0
        while isinstance(value, m.StringLength | m.NormalizeSpace):
            functions |= t.LENGTH if isinstance(value, m.StringLength) else t.NORMALIZED
            value = value.text
        if isinstance(value, m.NameOf):
            functions |= t.LOCAL_NAME if value.local else t.NAME
        elif isinstance(value, m.Count):
            functions |= t.COUNT
            if not m.without_here(value.path.steps):  # the document
                assert isinstance(literal, float)
                yield partial(self._items, m.Constant(compare(operator, 1, literal)))
                return
        assert not isinstance(value, m.Nodes)
        if operator in ("contains", "starts-with") and not literal:
            yield partial(self._items, m.Constant(True))
            return
        steps = m.without_here(value.path.steps)
        to_first = None if steps and self._words_max is None else _to_the_first(steps)
        if functions == t.NORMALIZED and isinstance(literal, float) and to_first is not None:
            functions = 0  # white space around a number does not matter
        asked = self._asked(operator, literal, functions)
        if functions & t.COUNT:
            yield partial(self._path, steps, t.COUNTED, asked=asked)
        elif to_first is None:
            yield partial(self._path, steps, first_flags=t.FIRST, asked=asked)
        else:
            yield partial(self._path, to_first, asked=asked)
            if steps and _holds_of_nothing(functions, operator, literal):
                yield partial(self._items, m.Not(m.Exists((m.Path(False, steps),))))

    def _asked(self, operator: str, literal: str | float, functions: int = 0) -> Words:
        payload = t.OPERATORS.index(operator) | functions << t.FUNCTION_SHIFT
        if isinstance(literal, str):
            number = self._strings.setdefault(literal.encode(), len(self._strings))
        else:  # -0 is 0 in all comparisons
            number = -1 - self._numbers.setdefault(float(literal) + 0.0, len(self._numbers))
        return [t.COMPARE | payload << t.KIND_BITS, t.LITERAL | number << t.KIND_BITS]

    # -- paths -----------------------------------------------------------------------------------

    def _path(
        self,
        steps: Sequence[m.Step],
        flags: int = 0,
        *,
        first_flags: int = 0,
        asked: Sequence[int] = (),
    ) -> None:
        """Write levels, one in the other, and in the last one what is asked."""
        levels: list[tuple[int, m.Step]] = []
        below = 0
        for step in steps:
            if step == m.DESCEND:
                below = t.DESCENDANT
            elif step != m.HERE:
                if below and any(isinstance(each, m.Position) for each in step.predicates):
                    levels.append((t.SELF | t.DESCENDANT, m.DESCEND))
                    below = 0
                levels.append((_AXES[step.axis] | below, step))
                below = 0
        if below:
            levels.append((t.SELF | t.DESCENDANT, m.DESCEND))
        if not levels and not asked:
            if not flags & t.MAIN:
                self._items(m.Constant(True))
                return
            levels.append((t.SELF, m.HERE))
        for of_axis, step in levels:
            self._step(step, of_axis | flags | first_flags)
            first_flags = 0
        self._code += asked
        for _ in levels:
            self._emit(t.END)

    def _step(self, step: m.Step, flags: int) -> None:
        """Begin a level, and write the predicates into it."""
        key = step.axis is m.Axis.ATTRIBUTE, step.test
        test = self._tests.setdefault(key, len(self._tests))
        self._emit(t.STEP, flags | test << t.TEST_SHIFT)
        for predicate in step.predicates:
            if isinstance(predicate, m.Position):
                self._emit(t.NTH, min(predicate.number, t.NTH_MAX))
            else:
                self._items(predicate)


_STEPS_TO_FIRST = 100
_AXES = {
    m.Axis.CHILD: 0,
    m.Axis.ATTRIBUTE: 0,
    m.Axis.DESCENDANT: t.DESCENDANT,
    m.Axis.SELF: t.SELF,
    m.Axis.DESCENDANT_OR_SELF: t.SELF | t.DESCENDANT,
}


def lowered(queries: Iterable[m.Query]) -> QueryTable:
    """Some queries, each of them, though some may say the same.

    >>> from tamis.language.xpath import parse
    >>> len(lowered([parse("//a"), parse("//a")]))
    2
    """
    lowering = Lowering()
    for query in queries:
        lowering.append(query)
    return lowering.table()


def _distinct(paths: Iterable[m.Path]) -> Iterable[tuple[m.Step, ...]]:
    """The steps of paths, each once: of a document, ``a`` and ``/a`` are the same."""
    return dict.fromkeys(path.steps for path in paths)


def _to_the_first(steps: tuple[m.Step, ...]) -> tuple[m.Step, ...] | None:
    """Steps to the first node, in the order of the document, that steps to children lead to.

    ``a[p]/b`` has ``a[p][b][1]/b[1]``. None where positions cannot say which node is the first, or
    take too many words.
    """
    if not steps or len(steps) > _STEPS_TO_FIRST:
        return None if steps else steps
    step, rest = steps[0], steps[1:]
    if step.axis is m.Axis.ATTRIBUTE:
        test = step.test
        is_one = isinstance(test, m.NameTest) and None not in (test.namespace, test.local)
        return steps if is_one and not rest else None
    inner = _to_the_first(rest)
    if step.axis is not m.Axis.CHILD or step.test is m.KindTest.NODE or inner is None:
        return None
    leads = (m.Exists((m.Path(False, rest),)),) if rest else ()
    return (m.Step(step.axis, step.test, (*step.predicates, *leads, m.Position(1))), *inner)


def _holds_of_nothing(functions: int, operator: str, literal: str | float) -> bool:
    """Whether what is asked is so of the empty string."""
    if isinstance(literal, float):
        if functions & t.LENGTH:
            return compare(operator, 0, literal)
        return compare_string(operator, b"", literal)
    if operator in ("=", "!="):
        return compare_string(operator, b"", literal.encode())
    return not literal
