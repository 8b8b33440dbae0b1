"""The operators of Diao and Franklin's plans (VLDB 2003, sections 3 and 5), as values.

A plan is a tree of these, over the streams of path-tuples that the path matching engine gives. A
path-tuple has a field for each step of its path; steps are counted in ``levels`` from its last
field back. Equal operators on equal inputs are equal values, which is how plans come to be shared.

Makes plans: PathSharing-F, -FW and -FWR, by what is claimed of streams, and for sharing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tamis.language.filters import Codes
from tamis.transform.shapes import EXISTS, VALUE, Comparison, End, Leaf, NoShapeError, Route, Shape
from tamis_papers.pathsharing.claims import NO_CLAIM, Claims

# -- operators -------------------------------------------------------------------------------------


SCAN, MERGE, HASH = "scan", "merge", "hash"
"""How an operator finds what belongs together: it relies on an order, or on none."""

Tests = tuple[tuple[Comparison, ...], ...]
"""Of steps, the last one's first."""


@dataclass(frozen=True, slots=True)
class PathTuples:
    """The stream of a path, from the path matching engine; its last field never descends."""

    codes: Codes


@dataclass(frozen=True, slots=True)
class Selection:
    """The tuples whose nodes pass tests."""

    source: Operator
    tests: Tests


@dataclass(frozen=True, slots=True)
class DupElim:
    """One tuple of those with the same last node, and, unless ``levels`` is 0, bound node."""

    source: Operator
    levels: int
    mode: str


@dataclass(frozen=True, slots=True)
class WhereFilter:
    """The tuples below whose bound node a tree search finds all of some nodes."""

    source: Operator
    searches: tuple[Search, ...]


class Search(NamedTuple):
    """What is looked for in the tree: the end of a route; it may have to pass a comparison."""

    route: Route
    comparison: Comparison | None


@dataclass(frozen=True, slots=True)
class ReturnSelect:
    """A group for each tuple, its lists filled by tree searches."""

    source: Operator
    searches: tuple[Search, ...]


@dataclass(frozen=True, slots=True)
class Semijoin:
    """The tuples of the left that have one of the right with the same bound node."""

    left: Operator
    right: Operator
    levels: int
    mode: str


class Joined(NamedTuple):
    """A stream of return paths' tuples: what a list is made of; the bound node is above."""

    stream: Operator
    levels: int


@dataclass(frozen=True, slots=True)
class OuterJoinSelect:
    """A group for each tuple of the left; in it a list for each stream, of what it joins with."""

    left: Operator
    lists: tuple[Joined, ...]
    mode: str


@dataclass(frozen=True, slots=True)
class GroupBy:
    """The tuples of a return path by bound node, without duplicates, for all joins with them."""

    source: Operator
    binding: PathTuples
    levels: int
    mode: str


@dataclass(frozen=True, slots=True)
class Join:
    """Pairs of tuples with the same bound node, in the order of the left."""

    left: Operator
    right: Operator
    levels: int
    mode: str


class Attributed(NamedTuple):
    """What a shared selection compares: strings of the node so many levels above the last."""

    levels: int
    kind: int
    name: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class SharedSelection:
    """All selections with the same signature, indexed by their constants.

    Attributes:
        source: a join, or the stream of a binding path.
        left: of the binding's tuples, if anything is asked of them.
        right: of the predicate path's tuples; its levels are 0.
    """

    source: Operator
    left: Attributed | None
    right: Attributed | None


@dataclass(frozen=True, slots=True)
class Selected:
    """One output of a shared selection: the bound tuples for one pair of constants, each once."""

    selection: SharedSelection
    left: Comparison | None
    right: Comparison | None


Operator = (
    PathTuples
    | Selection
    | DupElim
    | WhereFilter
    | ReturnSelect
    | Semijoin
    | OuterJoinSelect
    | GroupBy
    | Join
    | SharedSelection
    | Selected
)


# -- plans -----------------------------------------------------------------------------------------


F, FW, FWR = "f", "fw", "fwr"
"""Whose paths the path matching engine matches: those of for, of where too, or all."""

STEPS_MAX = 60
"""Of a path that is searched for in the tree, whose states are the bits of a word."""


def check_planned(shape: Shape) -> None:
    """Check that the paper's plans can run a shape: one conjunction, and lists of elements.

    Raises:
        NoShapeError: they cannot; why.
    """
    if len(shape.conditions) != 1:
        raise NoShapeError("a condition with 'or'")
    if not all(end.kind == VALUE for end in shape.ends):
        raise NoShapeError("a return path to attributes or text()")
    if not all(len(end.route.codes) <= STEPS_MAX for end in _ends(shape)):
        raise NoShapeError(f"a path of more than {STEPS_MAX} steps")


class Choice(NamedTuple):
    """Why an operator is as it is.

    Attributes:
        about: the clause.
        path: of the stream that it is about.
        chosen: what was done, or left out.
        claim: its number, or 0 where none helped.
    """

    about: str
    path: Codes
    chosen: str
    claim: int


class Planner:
    """Makes the plan of each query by itself.

    Args:
        sharing: ``F``, ``FW`` or ``FWR``.
        claims: what is known of streams, or None to know nothing.
        is_shared: whether to use the operators that are shared, of section 5.2; with ``FWR``.

    Attributes:
        is_shared: as given.
        choices: those of the plan that was made last.

    >>> from tamis.language.filters import Labels
    >>> from tamis.language.flwr import parse_transformation
    >>> from tamis.transform.shapes import task_of
    >>> from tamis.transform.shapes import Shapes
    >>> labels = Labels()
    >>> text = "<r>{ for $b in //b where $b/k = 'x' return $b/t }</r>"
    >>> shape = Shapes(labels).of(task_of(parse_transformation(text)))
    >>> planner = Planner(FWR, Claims(labels, None))
    >>> plan = planner.plan(shape)
    >>> type(plan).__name__, plan.mode, type(plan.left).__name__
    ('OuterJoinSelect', 'hash', 'Semijoin')
    >>> [(choice.chosen, choice.claim) for choice in planner.choices]
    [('no DupElim', 1), ('hash', 0), ('no DupElim', 3), ('hash', 0)]
    """

    def __init__(self, sharing: str, claims: Claims | None, is_shared: bool = False) -> None:
        self._sharing = sharing
        self._claims = claims
        self.is_shared = is_shared
        self.choices: list[Choice] = []

    def plan(self, shape: Shape) -> Operator:
        """The plan of a shape that passes ``check_planned``."""
        self.choices = []
        binding, tests, leaves = self._of_binding(shape)
        bound = None
        if self.is_shared:
            bound = self._shared(binding, tests, leaves)
        if bound is None:
            bound = self._bound(binding, tests)
            bound = self._where(bound, binding, leaves)
        routes = [self._below(binding, end.route) for end in shape.ends]
        if self._sharing != FWR:
            return ReturnSelect(bound, tuple(Search(route, None) for route in routes))
        return self._outer_join(bound, binding, routes)

    # -- the for clause ----------------------------------------------------------------------------

    def _of_binding(self, shape: Shape) -> tuple[Codes, Tests, list[Leaf]]:
        """The binding path, the tests of its steps, and the predicate paths.

        What the where clause asks of the bound node itself is a test of it.
        """
        route = shape.binding
        codes, tests = self._canonical(route.codes, route.tests[:-1], None)
        own: list[Comparison] = []
        leaves: list[Leaf] = []
        for leaf in shape.conditions[0]:
            if leaf.end.route.codes:
                leaves.append(leaf)
            else:
                own += [*leaf.end.route.tests[0], *_comparison(leaf)]
        return codes, _stripped(((*tests[0], *own), *tests[1:])), leaves

    def _bound(self, codes: Codes, tests: Tests) -> Operator:
        """The tuples of bound nodes, each node once."""
        stream: Operator = PathTuples(codes)
        if tests:
            stream = Selection(stream, tests)
        claim = self._claims.without_duplicates(codes) if self._claims else NO_CLAIM
        if claim:
            self._choose("for", codes, "no DupElim", claim)
            return stream
        self._choose("for", codes, "DupElim, scan", claim)
        return DupElim(stream, 0, SCAN)

    # -- the where clause --------------------------------------------------------------------------

    def _where(self, bound: Operator, binding: Codes, leaves: Sequence[Leaf]) -> Operator:
        """Those of the bound tuples that pass the predicate paths."""
        if self._sharing == F:
            if not leaves:
                return bound
            return WhereFilter(bound, tuple(self._search(binding, leaf) for leaf in leaves))
        for leaf in leaves:
            search = self._search(binding, leaf)
            path = binding + search.route.codes
            last, *others = search.route.tests
            tests = _stripped(((*last, *_comparison(leaf)), *others))
            stream: Operator = PathTuples(path)
            if tests:
                stream = Selection(stream, tests)
            mode = self._join_mode("where", path, len(binding))
            bound = Semijoin(bound, stream, len(search.route.codes), mode)
        return bound

    def _search(self, binding: Codes, leaf: Leaf) -> Search:
        route = self._below(binding, leaf.end.route)
        return Search(route, next(iter(_comparison(leaf)), None))

    def _shared(self, binding: Codes, tests: Tests, leaves: Sequence[Leaf]) -> Operator | None:
        """Selection and DupElim pulled above a join that is shared, or None.

        As in the paper: of queries with one predicate path at most, with one predicate on each
        path.
        """
        asked = [(level, test) for level, ofstep in enumerate(tests) for test in ofstep]
        if len(asked) > 1 or len(leaves) > 1 or not (asked or leaves):
            return None
        source: Operator = PathTuples(binding)
        right, right_test = None, None
        if leaves:
            search = self._search(binding, leaves[0])
            right_test = search.comparison
            if any(search.route.tests):
                return None
            path = binding + search.route.codes
            mode = self._join_mode("where", path, len(binding))
            source = Join(source, PathTuples(path), len(search.route.codes), mode)
            if right_test is not None:
                right = Attributed(0, right_test.kind, right_test.name)
        left, left_test = None, None
        if asked:
            level, left_test = asked[0]
            left = Attributed(level, left_test.kind, left_test.name)
        return Selected(SharedSelection(source, left, right), left_test, right_test)

    # -- the return clause -------------------------------------------------------------------------

    def _outer_join(self, bound: Operator, binding: Codes, routes: Sequence[Route]) -> Operator:
        lists: list[Joined] = []
        modes: list[str] = []
        for route in routes:
            path = binding + route.codes
            levels = len(route.codes)
            stream: Operator = PathTuples(path)
            if tests := _stripped(route.tests):
                stream = Selection(stream, tests)
            mode = self._join_mode("return", path, len(binding), is_noted=self.is_shared)
            modes.append(mode)
            if self.is_shared:
                grouping = SCAN if mode == MERGE else HASH
                stream = GroupBy(stream, PathTuples(binding), levels, grouping)
            else:
                stream = self._without_duplicates(stream, path, levels, mode)
            lists.append(Joined(stream, levels))
        mode = MERGE if all(each == MERGE for each in modes) else HASH
        if not self.is_shared and routes:
            claims = [self._order_claim(binding + route.codes, len(binding)) for route in routes]
            claim = max(claims) if mode == MERGE else NO_CLAIM
            self._choose("return", binding + routes[-1].codes, mode, claim)
        return OuterJoinSelect(bound, tuple(lists), mode)

    def _without_duplicates(
        self, stream: Operator, path: Codes, levels: int, mode: str
    ) -> Operator:
        claim = NO_CLAIM
        if self._claims is not None and levels:
            claim = self._claims.without_duplicate_pairs(path, len(path) - levels)
        elif self._claims is not None:
            claim = self._claims.without_duplicates(path)
        if claim:
            self._choose("return", path, "no DupElim", claim)
            return stream
        way = SCAN if mode == MERGE else HASH
        by = self._order_claim(path, len(path) - levels) if way == SCAN else NO_CLAIM
        self._choose("return", path, f"DupElim, {way}", by)
        return DupElim(stream, levels, way)

    # -- claims ------------------------------------------------------------------------------------

    def _join_mode(self, about: str, path: Codes, step: int, is_noted: bool = True) -> str:
        """Whether a stream may be merged on the field of a step, from 1, or has to be hashed."""
        claim = self._order_claim(path, step)
        mode = MERGE if claim else HASH
        if is_noted:
            self._choose(about, path, mode, claim)
        return mode

    def _order_claim(self, path: Codes, step: int) -> int:
        return self._claims.in_order(path, step) if self._claims is not None else NO_CLAIM

    def _choose(self, about: str, path: Codes, chosen: str, claim: int) -> None:
        self.choices.append(Choice(about, path, chosen, claim))

    def _below(self, binding: Codes, route: Route) -> Route:
        """A relative route in its canonical form."""
        if self._claims is None or not route.codes:
            return route
        start = self._claims.name(binding[-1])
        codes, tests = self._canonical(route.codes, route.tests[:-1], start)
        if len(codes) > STEPS_MAX:
            return route
        return Route(codes, (*tests, route.tests[-1]))

    def _canonical(self, codes: Codes, tests: Tests, start: str | None) -> tuple[Codes, Tests]:
        """Steps without superfluous ``//``, with the tests where they belong."""
        if self._claims is None:
            return codes, tests
        found: list[int] = []
        found_tests: list[tuple[Comparison, ...]] = []
        for code, test in zip(codes, reversed(tests), strict=True):
            steps = self._claims.canonical((code,), start)
            found += steps
            found_tests += [*[()] * (len(steps) - 1), test]
            start = self._claims.name(code)
        return tuple(found), tuple(reversed(found_tests))


def _comparison(leaf: Leaf) -> tuple[Comparison, ...]:
    """What a leaf asks of the node at its end; that there is one is no question."""
    if leaf.operator == EXISTS and leaf.end.kind == VALUE:
        return ()
    return (Comparison(leaf.end.kind, leaf.end.name, leaf.operator, leaf.literal),)


def _stripped(tests: Tests) -> Tests:
    """Tests up to the last step back that has some."""
    count = max((level + 1 for level, test in enumerate(tests) if test), default=0)
    return tests[:count]


def _ends(shape: Shape) -> list[End]:
    return [*shape.ends, *(leaf.end for leaf in shape.conditions[0])]
