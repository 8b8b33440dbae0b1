"""Strings of documents, asked many questions: each distinct string is looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import kernel
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language import model as ast
from tamis.language.table import (
    COUNT,
    FUNCTION_SHIFT,
    KIND_BITS,
    LENGTH,
    LOCAL_NAME,
    NAME,
    NORMALIZED,
    OPERATORS,
    QueryTable,
)
from tamis.language.values import COMPARISONS, normalize_space, xpath_number
from tamis.matching.engine import Refused

Mask = NDArray[np.bool_]

NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Question:
    """A test of a string.

    Attributes:
        functions: the functions that are applied first: "normalize-space", then "string-length".
        operator: of a comparison, or "contains" or "starts-with".
    """

    functions: tuple[str, ...]
    operator: str
    literal: bytes | float


def asked(table: QueryTable, asks: int, literal: int) -> Question:
    """What the words ``COMPARE`` and ``LITERAL`` ask of a string.

    Raises:
        Refused: they ask for a name, or a number of nodes.
    """
    payload = asks >> KIND_BITS
    functions = payload >> FUNCTION_SHIFT
    if functions & COUNT:
        raise Refused("it calls count()")
    if functions & (NAME | LOCAL_NAME):
        raise Refused("it calls local-name()" if functions & LOCAL_NAME else "it calls name()")
    names = [name for bit, name in _FUNCTIONS.items() if functions & bit]
    operator = OPERATORS[payload & (1 << FUNCTION_SHIFT) - 1]
    return Question(tuple(names), operator, table.literal(literal))


_FUNCTIONS = {NORMALIZED: "normalize-space", LENGTH: "string-length"}


def mask_of(indices: Int64, count: int) -> Mask:
    """As many booleans, of which those at some indices are true."""
    mask = np.zeros(count, np.bool_)
    mask[indices] = True
    return mask


class Strings:
    """A sequence of strings, of which each distinct one is looked at once.

    >>> strings = Strings([b"1", b" a", b"1.0"])
    >>> strings.find(Question((), "=", 1.0)), strings.find(Question((), "=", b"1"))
    (array([0, 2]), array([0]))
    >>> strings.find(Question(("normalize-space",), "starts-with", b"a"))
    array([1])
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        numbers: dict[bytes, int] = {}
        ids = [numbers.setdefault(value, len(numbers)) for value in values]
        self._numbers = numbers
        self._distinct = list(numbers)
        self._ids: Int64 = np.array(ids, np.int64)

    def find(self, question: Question) -> Int64:
        """The indices of the strings that pass a question, in no order."""
        literal = question.literal
        if question.functions or question.operator != "=" or isinstance(literal, float):
            return np.flatnonzero(self._where_distinct(question)[self._ids])
        number = self._numbers.get(literal)
        if number is None:
            return NONE
        order, starts = self._by_number
        return order[starts[number] : starts[number + 1]]

    @cached_property
    def _by_number(self) -> tuple[Int64, Int64]:
        """The indices of all strings, grouped by distinct string; and where each group begins."""
        order = np.argsort(self._ids, kind="stable")
        return order, np.searchsorted(self._ids[order], np.arange(len(self._distinct) + 1))

    def _where_distinct(self, question: Question) -> Mask:
        operator, literal = question.operator, question.literal
        if question.functions:
            *inner, last = question.functions
            if last == "string-length":
                return _compared(self._lengths(is_normalized=bool(inner)), question)
            normalized = self._normalized
            return normalized._where_distinct(Question((), operator, literal))[normalized._ids]
        if isinstance(literal, float):
            return _compared(self._as_numbers, question)
        if operator == "contains":
            return np.array([literal in value for value in self._distinct], np.bool_)
        if operator == "starts-with":
            return np.array([value.startswith(literal) for value in self._distinct], np.bool_)
        number = self._numbers.get(literal)
        is_equal = mask_of(NONE if number is None else np.array([number]), len(self._distinct))
        return is_equal if operator == "=" else ~is_equal

    def _lengths(self, is_normalized: bool) -> NDArray[np.float64]:
        """How many characters each distinct one has, after ``normalize-space()`` or as it is."""
        if is_normalized:
            normalized = self._normalized
            return normalized._lengths(is_normalized=False)[normalized._ids]
        return np.array([len(value.decode()) for value in self._distinct], np.float64)

    @cached_property
    def _normalized(self) -> Strings:
        return Strings(map(normalize_space, self._distinct))

    @cached_property
    def _as_numbers(self) -> NDArray[np.float64]:
        return np.array([xpath_number(value) for value in self._distinct], np.float64)


def _compared(numbers: NDArray[np.float64], question: Question) -> Mask:
    return np.asarray(COMPARISONS[question.operator](numbers, question.literal), np.bool_)


class BatchValues:
    """The strings of a batch: of attributes, of text nodes, and of elements.

    Args:
        vocabulary: that the batch was parsed with.
    """

    def __init__(self, batch: DocumentBatch, vocabulary: Vocabulary) -> None:
        self._batch, self._vocabulary = batch, vocabulary

    def passes(self, test: ast.NodeTest) -> Mask:
        """By name of the vocabulary: whether it passes a test."""
        count = len(self._vocabulary)
        if not isinstance(test, ast.NameTest):
            return np.ones(count, np.bool_)
        if test.namespace is not None and test.local is not None:
            wanted = self._vocabulary.find(test.namespace, test.local)
            return np.asarray(np.arange(count) == wanted)
        return np.array([test.passes(*name) for name in self._vocabulary], np.bool_)

    def attributes(self, numbers: Int64) -> Strings:
        """The values of some attributes."""
        batch = self._batch
        starts, ends = batch.value_start[numbers], batch.value_end[numbers]
        return Strings(_slices(self._attribute_values, starts, ends))

    def texts(self, numbers: Int64) -> Strings:
        """Some text nodes."""
        batch = self._batch
        starts, ends = batch.text_start[numbers], batch.text_end[numbers]
        return Strings(_slices(self._text_values, starts, ends))

    def elements(self, starts: Int64, ends: Int64) -> Strings:
        """The string values of elements, given by their start and end events."""
        batch = self._batch
        first = np.searchsorted(batch.text_event, starts)
        last = np.searchsorted(batch.text_event, ends)
        has_some = first < last
        begins, stops = np.zeros((2, len(starts)), np.int64)
        begins[has_some] = batch.text_start[first[has_some]]
        stops[has_some] = batch.text_end[last[has_some] - 1]
        return Strings(_slices(self._text_values, begins, stops))

    @property
    def text_parents(self) -> Int64:
        """The start event of the parent of each text node."""
        return self._extents[1]

    @property
    def ends(self) -> Int64:
        """The end event of each element, by its start event."""
        return self._extents[0]

    @cached_property
    def _extents(self) -> tuple[Int64, Int64]:
        tags, text_event = self._batch.tags, self._batch.text_event
        deepest = int(np.cumsum(np.where(tags >= 0, 1, -1)).max(initial=0))
        ends, parents = np.zeros(len(tags), np.int64), np.zeros(len(text_event), np.int64)
        find_extents(tags, text_event, ends, parents, np.zeros(deepest, np.int64))
        return ends, parents

    @cached_property
    def _text_values(self) -> bytes:
        return self._batch.text_values.tobytes()

    @cached_property
    def _attribute_values(self) -> bytes:
        return self._batch.attribute_values.tobytes()


def _slices(values: bytes, starts: Int64, ends: Int64) -> Iterator[bytes]:
    return (values[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))


@kernel
def find_extents(
    tags: Int32, text_event: Int64, ends: Int64, parents: Int64, levels: Int64
) -> None:
    """Find where elements end, and which element each text node is in.

    Args:
        text_event: the event before each text node.
        ends: written: by start event, the end event.
        parents: written: by text node, the start event of its parent.
        levels: room for the deepest element.
    """
    depth = text = 0
    for event in range(len(tags)):
        if tags[event] >= 0:
            levels[depth] = event
            depth += 1
        else:
            depth -= 1
            ends[levels[depth]] = event
        while text < len(text_event) and text_event[text] == event:
            parents[text] = levels[depth - 1]
            text += 1
