"""``ConstantIndex``: what strings are compared with, which grows as transformations are added."""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.transform.shapes import Comparison, Leaf
from tamis.transform.strings.kernels.tables import number_hash, text_hash
from tamis.transform.strings.layout import (
    COMPARISON,
    EQUAL,
    EXISTS,
    LEAF,
    LEAF_NEXT,
    LESS,
    NONE,
    OPERATORS,
    SOURCE,
    SOURCE_EXISTS,
    SOURCE_NUMBERS,
    SOURCE_RANGES,
    SOURCE_TEXTS,
    SOURCE_UNEQUAL,
    UNEQUAL,
    Constants,
    Read,
)
from tamis.transform.strings.rows import Rows, Slabs, Table


class ConstantIndex:
    """Sources of strings, the leaves that compare them with constants, and tests of steps.

    A leaf is found from the string that makes it true; a test of a step is looked at where the step
    is. What is asked twice is there once.

    Attributes:
        attributes: the names of attributes, by number.
        sources, leaves: their records, of which some columns are the strategy's.
    """

    def __init__(self) -> None:
        self.attributes: list[tuple[str, str]] = []
        self.sources = Rows(SOURCE)
        self.leaves = Rows(LEAF)
        self._numbers: dict[Hashable, int] = {}
        self._literals = Rows(1, np.float64)
        self._texts = Rows(1, np.uint8)
        self._equals = Table()
        self._ranges = Slabs()
        self._tests = Rows(1)
        self._comparisons = Rows(COMPARISON)
        self._comparison_literals = Rows(1, np.float64)

    def arrays(self) -> Constants:
        """The arrays, as they are now; those that grow may be replaced."""
        return Constants(
            sources=self.sources.view,
            leaves=self.leaves.view,
            literals=self._literals.view,
            texts=self._texts.view,
            equals=self._equals.array,
            range_starts=self._ranges.starts.view,
            range_counts=self._ranges.counts.view,
            thresholds=self._ranges.keys.view,
            range_leaves=self._ranges.numbers.view,
            tests=self._tests.view,
            comparisons=self._comparisons.view,
            comparison_literals=self._comparison_literals.view,
        )

    def add_source(self, kind: int, name: tuple[str, str] | None, own: Sequence[int] = ()) -> int:
        """A new source: its number.

        Args:
            own: the first of the strategy's columns.
        """
        row = [kind, self._attribute(name), NONE, 0, 0, NONE, NONE, NONE, NONE, NONE]
        return self.sources.add([*row, *own])

    def leaf(self, source: int, asked: Leaf | Comparison, own: Sequence[int] = ()) -> int:
        """The leaf that asks a source for a comparison.

        Args:
            own: the first of the strategy's columns, of one that is new.
        """
        literal = asked.literal
        operator = OPERATORS.index(asked.operator)
        key = ("leaf", source, operator, isinstance(literal, bytes), literal)
        found = self._numbers.get(key)
        if found is None:
            text, text_end = self._text(literal)
            found = self._numbers[key] = self.leaves.add(
                [source, operator, NONE, text, text_end, *own]
            )
            self._literals.add([_number(literal)])
            self._have_found(found, source, operator, literal)
        return found

    def tests(self, steps: Iterable[Iterable[Comparison]]) -> int:
        """Where the tests of steps are listed, the last step's first; each list ends with -1."""
        key = ("tests", tuple(map(tuple, steps)))
        found = self._numbers.get(key)
        if found is None:
            listed: list[int] = []
            for tests in key[1]:
                listed += [*map(self.comparison, tests), NONE]
            found = self._numbers[key] = self._tests.extend(listed)
        return found

    def comparison(self, test: Comparison) -> int:
        """The number of a test of a step."""
        found = self._numbers.get(test)
        if found is None:
            text, text_end = self._text(test.literal)
            name = self._attribute(test.name)
            operator = OPERATORS.index(test.operator)
            row = [test.kind, name, operator, text, text_end]
            found = self._numbers[test] = self._comparisons.add(row)
            self._comparison_literals.add([_number(test.literal)])
        return found

    def _attribute(self, name: tuple[str, str] | None) -> int:
        if name is None:
            return NONE
        number = self._numbers.setdefault(("attribute", name), len(self.attributes))
        if number == len(self.attributes):
            self.attributes.append(name)
        return number

    def _text(self, literal: bytes | float | None) -> tuple[int, int]:
        """Where a string that is compared with is; ``NONE`` where it is none."""
        if not isinstance(literal, bytes):
            return NONE, NONE
        start = self._texts.extend(np.frombuffer(literal, np.uint8))
        return start, start + len(literal)

    def _have_found(
        self, leaf: int, source: int, operator: int, literal: bytes | float | None
    ) -> None:
        """Have kernels find a leaf that is new."""
        row = self.sources.array[source * SOURCE : (source + 1) * SOURCE]
        if operator == EXISTS:
            row[SOURCE_EXISTS] = leaf
        elif operator == UNEQUAL:
            self.leaves.array[leaf * LEAF + LEAF_NEXT] = row[SOURCE_UNEQUAL]
            row[SOURCE_UNEQUAL] = leaf
        elif isinstance(literal, bytes):
            row[SOURCE_TEXTS] += 1
            text = np.frombuffer(literal, np.uint8)
            text.flags.writeable = False
            self._equals.put(text_hash(text, source), leaf)
        elif operator == EQUAL:
            row[SOURCE_NUMBERS] += 1
            (bits,) = struct.unpack("<q", struct.pack("<d", _number(literal) + 0.0))
            self._equals.put(number_hash(bits, source), leaf)
        else:
            number = SOURCE_RANGES + operator - LESS
            if row[number] == NONE:
                row[number] = self._ranges.new()
            self._ranges.insert(int(row[number]), _number(literal), leaf)


def read_of(rows: Int64, records: Int32, batch: DocumentBatch, names: NDArray[Any]) -> Read:
    """What kernels read of a document."""
    return Read(
        rows=rows.reshape(-1),
        records=records.reshape(-1),
        tags=batch.tags,
        attribute_event=batch.attribute_event,
        attribute_name=batch.attribute_name,
        value_start=batch.value_start,
        value_end=batch.value_end,
        attribute_values=batch.attribute_values,
        text_event=batch.text_event,
        text_start=batch.text_start,
        text_end=batch.text_end,
        text_values=batch.text_values,
        names=names,
    )


def ids_of(names: Sequence[tuple[str, str]], vocabulary: Vocabulary) -> Int32:
    """The ids that names of attributes have in a vocabulary, or -1."""
    return np.array([vocabulary.find(*name) for name in names], np.int32)


def _number(literal: bytes | float | None) -> float:
    return literal if isinstance(literal, float) else float("nan")
