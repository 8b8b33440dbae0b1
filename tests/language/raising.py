"""The words of a query → a syntax tree that has the same words: to be printed, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tamis.language import model as m
from tamis.language import table as t
from tamis.language.table import QueryTable


def raised(table: QueryTable, number: int) -> m.Query:
    """A query of a table as a syntax tree; written down again, it has the same words."""
    items, _ = _items_of(table.words(number), 0)
    reader = _Reader(table)
    if _is_main(items[0]) or (_kind(items[0]) == t.ANY and any(map(_is_main, items[0].items))):
        members = items if _is_main(items[0]) else items[0].items
        return m.Query(m.Exists(tuple(m.Path(True, reader.steps(item)) for item in members)))
    expression = reader.all_of(items)
    return m.Query(expression, is_truth=isinstance(expression, m.Exists))


class _Item(NamedTuple):
    word: int
    literal: int
    items: list[_Item]


def _items_of(words: list[int], at: int) -> tuple[list[_Item], int]:
    """The items up to an END or the last word, and where that is."""
    found: list[_Item] = []
    while at < len(words) and _kind_of(words[at]) != t.END:
        word, literal = words[at], 0
        items: list[_Item] = []
        at += 1
        if _kind_of(word) == t.COMPARE:
            literal = words[at]
            at += 1
        elif _kind_of(word) != t.NTH:
            items, at = _items_of(words, at)
            at += 1
        found.append(_Item(word, literal, items))
    return found, at


def _kind_of(word: int) -> int:
    return word & t.KIND_MASK


def _kind(item: _Item) -> int:
    return _kind_of(item.word)


def _is_main(item: _Item) -> bool:
    return _kind(item) == t.STEP and bool(item.word >> t.KIND_BITS & t.MAIN)


class _Reader:
    """Makes syntax trees of items."""

    def __init__(self, table: QueryTable) -> None:
        self._table = table

    def all_of(self, items: Sequence[_Item]) -> m.Expression:
        found = [self.expression(item) for item in items]
        if len(found) == 1:
            return found[0]
        return m.And(tuple(found)) if found else m.Constant(True)

    def expression(self, item: _Item) -> m.Expression:
        match _kind(item):
            case t.COMPARE:
                return self._asked(item, m.Path(False, (m.HERE,)))
            case t.NOT:
                return m.Not(self.all_of(item.items))
            case t.ALL:
                return self.all_of(item.items)
            case t.ANY:
                found = tuple(map(self.expression, item.items))
                return m.Or(found) if found else m.Constant(False)
        if item.word >> t.KIND_BITS & (t.FIRST | t.COUNTED):
            last = item
            while _kind(last) != t.COMPARE:
                last = last.items[-1]
            return self._asked(last, m.Path(False, self.steps(item, is_value=True)), is_value=True)
        return m.Exists((m.Path(False, self.steps(item)),))

    def steps(self, item: _Item, is_value: bool = False) -> tuple[m.Step, ...]:
        """A step, and those of the same path behind it."""
        *inner, last = [*item.items, None]
        if is_value or (inner and _is_main(inner[-1])):
            *inner, last = inner
        predicates = tuple(
            m.Position(each.word >> t.KIND_BITS) if _kind(each) == t.NTH else self.expression(each)
            for each in inner
        )
        flags = item.word >> t.KIND_BITS
        is_attribute, test = self._table.tests[flags >> t.TEST_SHIFT]
        axis = m.Axis.ATTRIBUTE if is_attribute else m.Axis.CHILD
        if flags & t.SELF:
            axis = m.Axis.DESCENDANT_OR_SELF if flags & t.DESCENDANT else m.Axis.SELF
        before = (m.DESCEND,) if flags & (t.DESCENDANT | t.SELF) == t.DESCENDANT else ()
        behind = () if last is None or _kind(last) == t.COMPARE else self.steps(last, is_value)
        return (*before, m.Step(axis, test, predicates), *behind)

    def _asked(self, item: _Item, path: m.Path, is_value: bool = False) -> m.Expression:
        """What is asked of the nodes of a path, or (``is_value``) of its value."""
        payload = item.word >> t.KIND_BITS
        functions = payload >> t.FUNCTION_SHIFT
        operator = t.OPERATORS[payload & (1 << t.FUNCTION_SHIFT) - 1]
        literal = self._table.literal(item.literal)
        text = literal.decode() if isinstance(literal, bytes) else ""
        value: m.StringFunction = m.StringOf(path)
        if functions & (t.NAME | t.LOCAL_NAME):
            value = m.NameOf(path, bool(functions & t.LOCAL_NAME))
        if functions & t.NORMALIZED:
            value = m.NormalizeSpace(value)
        if operator == "contains":
            return m.Contains(value, text)
        if operator == "starts-with":
            return m.StartsWith(value, text)
        compared: m.Value = value
        if functions & t.COUNT:
            compared = m.Count(path)
        elif functions & t.LENGTH:
            compared = m.StringLength(value)
        elif not functions:
            compared = m.Nodes((path,))
        return m.Compare(operator, compared, text if isinstance(literal, bytes) else literal)
