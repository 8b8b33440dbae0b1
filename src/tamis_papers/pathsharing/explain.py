"""Prints plans, and the claims that they rely on."""

from __future__ import annotations

from collections.abc import Iterator

from tamis.language.filters import Labels
from tamis.transform.shapes import ATTRIBUTE, EXISTS, TEXT, Comparison, Shape
from tamis_papers.pathsharing.plan import (
    Attributed,
    Choice,
    DupElim,
    GroupBy,
    Join,
    Operator,
    OuterJoinSelect,
    PathTuples,
    Planner,
    ReturnSelect,
    Search,
    Selected,
    Selection,
    Semijoin,
    SharedSelection,
    Tests,
    WhereFilter,
)

CLAIMS = {
    0: "no claim holds",
    1: "claim 1: the path has at most one //",
    2: "claim 2: in the DTD, what is behind each // but the last is on no loop",
    3: "claim 3: neither the path to the bound node nor the one from there has duplicates",
    4: "claim 4: there is no // up to the bound node",
    5: "claim 5: in the DTD, what is behind each // is on no loop with the bound node",
}


def explain(planner: Planner, shape: Shape, labels: Labels) -> str:
    """The plan of a shape, an operator to a line above what it reads, and why it is so.

    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis_papers.pathsharing.claims import Claims
    >>> from tamis.transform.shapes import task_of
    >>> from tamis.transform.shapes import Shapes
    >>> labels = Labels()
    >>> text = "<r>{ for $b in /a//b where $b/k = 'x' return $b/t }</r>"
    >>> shape = Shapes(labels).of(task_of(parse_transformation(text)))
    >>> print(explain(Planner("fwr", Claims(labels, None)), shape, labels))
    OuterJoin-Select, hash: a group for each tuple, a list for each stream
    ├─ Semijoin, hash: on the bound node
    │  ├─ stream of /a//b
    │  └─ Selection: . = 'x'
    │     └─ stream of /a//b/k
    └─ stream of /a//b/t
    for /a//b: no DupElim (claim 1: the path has at most one //)
    where /a//b/k: hash (no claim holds)
    return /a//b/t: no DupElim (claim 3: neither the path to the bound node nor the one from there \
has duplicates)
    return /a//b/t: hash (no claim holds)
    """
    printer = _Printer(labels)
    lines = [*printer.tree(planner.plan(shape), "", "")]
    lines += [printer.choice(choice) for choice in dict.fromkeys(planner.choices)]
    return "\n".join(lines)


class _Printer:
    def __init__(self, labels: Labels) -> None:
        self._labels = labels

    def choice(self, choice: Choice) -> str:
        path = self._labels.written(choice.path)
        return f"{choice.about} {path}: {choice.chosen} ({CLAIMS[choice.claim]})"

    def tree(self, operator: Operator, first: str, others: str) -> Iterator[str]:
        """The lines of an operator; the first one and the others begin so."""
        text, inputs = self._operator(operator)
        yield first + text
        for number, below in enumerate(inputs, 1):
            is_last = number == len(inputs)
            ahead = "└─ " if is_last else "├─ "
            yield from self.tree(below, others + ahead, others + ("   " if is_last else "│  "))

    def _operator(self, operator: Operator) -> tuple[str, tuple[Operator, ...]]:
        """An operator's own line, and what it reads."""
        match operator:
            case PathTuples(codes):
                return f"stream of {self._labels.written(codes)}", ()
            case Selection(source, tests):
                return f"Selection: {_tests(tests)}", (source,)
            case DupElim(source, levels, mode):
                of = "pair of bound node and last node" if levels else "bound node"
                return f"DupElim, {mode}: one tuple for each {of}", (source,)
            case WhereFilter(source, searches):
                asked = " and ".join(map(self._search, searches))
                return f"Where-Filter, tree search: {asked}", (source,)
            case ReturnSelect(source, searches):
                asked = ", ".join(map(self._search, searches))
                return f"Return-Select, tree search: {asked}", (source,)
            case Semijoin(left, right, _, mode):
                return f"Semijoin, {mode}: on the bound node", (left, right)
            case OuterJoinSelect(left, lists, mode):
                how = "by group" if any(isinstance(x.stream, GroupBy) for x in lists) else mode
                text = f"OuterJoin-Select, {how}: a group for each tuple, a list for each stream"
                return text, (left, *(joined.stream for joined in lists))
            case GroupBy(source, _, _, mode):
                return f"shared GroupBy, {mode}: by bound node", (source,)
            case Join(left, right, _, mode):
                return f"shared Join, {mode}: on the bound node", (left, right)
            case SharedSelection(source, left, right):
                signature = ", ".join(_signature(each) for each in (left, right) if each)
                return f"shared Selection: by {signature or 'nothing'}", (source,)
            case Selected(selection, left, right):
                constants = " and ".join(_comparison(each) for each in (left, right) if each)
                text = f"its output for {constants or 'all'}; DupElim, scan"
                return text, (selection,)

    def _search(self, search: Search) -> str:
        path = "." + self._labels.written(search.route.codes)
        tests = _tests(search.route.tests) if any(search.route.tests) else ""
        compared = "" if search.comparison is None else f"[{_comparison(search.comparison)}]"
        return path + compared + (f" with {tests}" if tests else "")


_STEPS = ("", " of the step before", " two steps before", " three steps before")


def _tests(tests: Tests) -> str:
    """Tests of steps, the last one's first."""
    return ", ".join(
        _comparison(test) + (_STEPS[level] if level < len(_STEPS) else f" {level} steps before")
        for level, listed in enumerate(tests)
        for test in listed
    )


def _signature(attributed: Attributed) -> str:
    return _subject(attributed.kind, attributed.name)


def _comparison(test: Comparison) -> str:
    subject = _subject(test.kind, test.name)
    if test.operator == EXISTS:
        return subject
    literal = repr(test.literal.decode()) if isinstance(test.literal, bytes) else test.literal
    return f"{subject} {test.operator} {literal}"


def _subject(kind: int, name: tuple[str, str] | None) -> str:
    if kind == TEXT:
        return "text()"
    if kind != ATTRIBUTE:
        return "."
    return "@*" if name is None else f"@{name[1]}"
