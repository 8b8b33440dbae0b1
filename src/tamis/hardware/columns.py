"""Paths → the columns of their stacks, and how columns are saved.

The stacks are those of Moussalli et al., *Accelerating XML query matching through custom stack
generation on FPGAs*, §3.2 to §3.4. A stack has a row for each open element, and a row has a bit for
each column. A start tag pushes a row: a column's bit is set if one of its terms holds. There are
three layouts:

* :func:`plain_columns`: each step of each path has a column. The paper's systems without
  optimisation.
* :func:`folded_columns`: steps of one path with different tags share a column, and the tag of the
  open element tells them apart; the first and the last step have none. The paper's optimisation.
* :func:`shared_columns`: all paths of a cluster share the columns of their common first steps, as
  the paths of a trie do. It is not in the paper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tamis.hardware.read import Path, Step

ROOT, FIRST, INSIDE, ANYWHERE = range(-4, 0)
"""Sources that are no column. ROOT: no element is open, so the new one is the root; FIRST: the
root alone is open; INSIDE: some element is open; ANYWHERE: always true."""


class Term(NamedTuple):
    """What a start tag must meet.

    Attributes:
        source: a column whose bit must be set in the row on top, or one of the constants above.
        tags: of the new element, one of these; None: any.
        facts: what its start tag must show, all of them.
        top: of the innermost open element, one of these; None: any.
    """

    source: int
    tags: tuple[int, ...] | None
    facts: tuple[int, ...] = ()
    top: tuple[int, ...] | None = None


class Column(NamedTuple):
    """A column.

    Attributes:
        terms: one of them sets its bit.
        keeps: whether the bit is also set if it is in the row below, as ``//`` needs.
    """

    terms: tuple[Term, ...]
    keeps: bool = False


@dataclass
class Columns:
    """The columns of a cluster.

    Attributes:
        columns: sources come before the columns that read them.
        matches: for each path what a start tag must meet to match.
        stored: a match is the bit of the path's last column instead, the ``source`` of its term.
    """

    columns: list[Column] = field(default_factory=list)
    matches: list[Term] = field(default_factory=list)
    stored: bool = False

    def add(self, column: Column) -> int:
        """The number of a new column."""
        self.columns.append(column)
        return len(self.columns) - 1

    def uses_top(self) -> bool:
        """Whether the tag of the innermost open element is needed."""
        terms = [term for column in self.columns for term in column.terms] + self.matches
        return any(term.top is not None for term in terms)


def plain_columns(paths: Sequence[Path]) -> Columns:
    """A column for each step of each path.

    >>> for column in plain_columns([(Step(True, (0,)), Step(True, (1,)))]).columns:
    ...     print(column)
    Column(terms=(Term(source=-1, tags=(0,), facts=(), top=None),), keeps=True)
    Column(terms=(Term(source=0, tags=(1,), facts=(), top=None),), keeps=False)
    """
    result = Columns(stored=True)
    for path in paths:
        source = 0
        for number, step in enumerate(path):
            origin = source if number else _origin(step)
            keeps = path[number + 1 : number + 2] and path[number + 1].below
            source = result.add(Column((Term(origin, step.tags, step.facts),), bool(keeps)))
        result.matches.append(Term(source, None))
    return result


def folded_columns(paths: Sequence[Path]) -> Columns:
    """Steps of one path share columns, as the paper's §3.3 says.

    A tag before ``//`` has a column of its own, as has a ``*``. The first step needs none before
    ``/``: the tag of the innermost element says the same. Before ``//`` it needs none if it is
    ``*``. The paper's ``a`` may begin anywhere, as ``//a`` here; of ``/a`` the depth is checked,
    too. A column with one step needs no tag to tell its steps apart.

    >>> a, b, c = range(3)
    >>> path = (Step(True, (a,)), *(Step(False, (tag,)) for tag in (c, a, c, b)))
    >>> result = folded_columns([path])  # Figure 2: //a/c/a/c/b
    >>> for column in result.columns:
    ...     print([(term.source, term.tags, term.top) for term in column.terms])
    [(-2, (2,), (0,)), (0, (0,), (2,))]
    [(0, (2,), (0,))]
    >>> result.matches
    [Term(source=1, tags=(1,), facts=(), top=None)]
    """
    result = Columns()
    for path in paths:
        _fold_path(result, path)
    return result


def _fold_path(result: Columns, path: Path) -> None:
    """Add the columns of one path."""
    numbers = _assign(path)
    base = len(result.columns)
    terms: dict[int, list[Term]] = defaultdict(list)
    for number, step in enumerate(path):
        origin, top = _origin(step), None
        if number == 1 and numbers[0] is None:
            origin, top = INSIDE, path[0].tags
            if not step.below and not path[0].below:
                origin = FIRST
        elif number:
            column = numbers[number - 1]
            assert column is not None
            origin = base + column
            if numbers.count(column) > 1:
                top = path[number - 1].tags
        term = Term(origin, step.tags, step.facts, top)
        column = numbers[number]
        if number == len(path) - 1:
            result.matches.append(term)
        elif column is not None:
            terms[column].append(term)
    keeps = {numbers[n] for n, step in enumerate(path[1:]) if step.below}
    for column in range(len(terms)):
        result.add(Column(tuple(terms[column]), column in keeps))


def _assign(path: Path) -> list[int | None]:
    """For each step of a path the column that holds it, counted from 0; None: it needs none."""
    numbers: list[int | None] = []
    folded: list[tuple[int, set[int]]] = []  # columns that steps share, and the tags in them
    count = 0
    for number, step in enumerate(path):
        is_last = number == len(path) - 1
        before_below = not is_last and path[number + 1].below
        needs_none = not step.facts and (not before_below or step.tags is None)
        if is_last or (number == 0 and needs_none):
            numbers.append(None)
            continue
        if step.tags is not None and not before_below:
            for column, tags in folded:
                if tags.isdisjoint(step.tags):
                    tags.update(step.tags)
                    numbers.append(column)
                    break
            else:
                folded.append((count, set(step.tags)))
                numbers.append(count)
                count += 1
        else:
            numbers.append(count)
            count += 1
    return numbers


def shared_columns(paths: Sequence[Path]) -> Columns:
    """Equal first steps of all paths share a column.

    A prefix has two columns if both ``/`` and ``//`` follow it: one bit is copied from row to row.
    """
    result = Columns()
    numbers: dict[tuple[Path, bool], int] = {}

    def term_of(path: Path) -> Term:
        step, before = path[-1], path[:-1]
        if not before:
            source = _origin(step)
        elif _needs_no_column(before):
            source = FIRST if not step.below and not before[0].below else INSIDE
        else:
            source = numbers[before, step.below]
        return Term(source, step.tags, step.facts)

    prefixes = dict.fromkeys(
        (path[:n], path[n].below) for path in paths for n in range(1, len(path))
    )
    for prefix, below in sorted(prefixes, key=lambda one: len(one[0])):
        if not _needs_no_column(prefix):
            numbers[prefix, below] = result.add(Column((term_of(prefix),), below))
    result.matches = [term_of(path) for path in paths]
    return result


def _needs_no_column(prefix: Path) -> bool:
    """Whether it is a ``*`` alone: some element is open, then."""
    return len(prefix) == 1 and prefix[0].tags is None and not prefix[0].facts


def _origin(step: Step) -> int:
    return ANYWHERE if step.below else ROOT


LAYOUTS: dict[str, Callable[[Sequence[Path]], Columns]] = {
    "plain": plain_columns,
    "folded": folded_columns,
    "shared": shared_columns,
}
