"""Formulas of constraints, with ``and``, ``or`` and ``not`` → filters, which are conjunctions.

A formula is the number of a constraint, or ``All``, ``Some`` or ``Not`` of formulas. A filter has
constraints that must hold, by which engines find it, and *clauses*: in each, one of its literals
must be true. What would multiply as a disjunction of conjunctions becomes clauses instead: three
lists of 18 alternatives are 18 filters with two clauses each, and not 5,832 filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, product
from math import prod
from typing import NamedTuple, NoReturn


class All(NamedTuple):
    """A conjunction."""

    parts: tuple[Formula, ...]


class Some(NamedTuple):
    """A disjunction."""

    parts: tuple[Formula, ...]


class Not(NamedTuple):
    """A negation."""

    part: Formula


Formula = int | All | Some | Not


class Literal(NamedTuple):
    """Some constraints hold, all together, or not so; by their numbers."""

    constraints: tuple[int, ...]
    is_negated: bool


Clause = tuple[Literal, ...]
"""A disjunction."""


class Conjunction(NamedTuple):
    """A filter: all of these hold."""

    constraints: tuple[int, ...]
    clauses: tuple[Clause, ...] = ()


EXPANDED_MAX = 64
"""Disjunctions are multiplied out as long as they come to so many filters, or fewer."""

_LITERALS = 64
"""Of so many filters or clauses as are allowed, together there are this many times as many."""

_EVERY = Conjunction(())


def conjunctions(
    formula: Formula, most: int, refuse: Callable[[int], NoReturn]
) -> list[Conjunction]:
    """The filters that a formula is a disjunction of, each once.

    Args:
        most: filters, and clauses of a filter; ``refuse`` is called with a number beyond.

    >>> def refuse(count):
    ...     raise ValueError(count)
    >>> conjunctions(All((0, Some((1, 2)))), 9, refuse)
    [Conjunction(constraints=(0, 1), clauses=()), Conjunction(constraints=(0, 2), clauses=())]
    >>> conjunctions(All((0, Not(All((1, 2))))), 9, refuse)[0].clauses
    ((Literal(constraints=(1, 2), is_negated=True),),)
    """
    lowering = _Lowering(most, refuse)
    found = lowering.filters(formula)
    lowering.checked(len(found))
    return found


class _Lowering:
    def __init__(self, most: int, refuse: Callable[[int], NoReturn]) -> None:
        self.most = most
        self.refuse = refuse

    def checked(self, count: int) -> None:
        if count > self.most:
            self.refuse(count)

    def filters(self, formula: Formula) -> list[Conjunction]:
        match formula:
            case int():
                return [Conjunction((formula,))]
            case Some(parts):
                found = dict.fromkeys(chain.from_iterable(map(self.filters, parts)))
                self.checked(len(found))
                return list(found)
            case Not(Not(part)):
                return self.filters(part)
            case Not():
                return [_joined([_EVERY], self.clauses(formula))]
            case All(parts):
                return self._filters_of_all(_flat(parts))

    def _filters_of_all(self, parts: Sequence[Formula]) -> list[Conjunction]:
        """Disjunctions are multiplied out while this makes few filters; the rest are clauses."""
        found = {
            place: self.filters(part)
            for place, part in enumerate(parts)
            if not isinstance(part, Not) or isinstance(part.part, Not)
        }
        # Best first: where a filter has no constraint of its own, every event is looked at for it.
        order = sorted(found, key=lambda place: (_is_open(found[place]), len(found[place])))
        taken, count = set(order[:1]), len(found[order[0]]) if order else 1
        for place in order[1:]:
            if (more := count * len(found[place])) <= EXPANDED_MAX:
                taken.add(place)
                count = more
        self.checked(count)
        clauses: list[Clause] = []
        for place, part in enumerate(parts):
            if place not in taken:
                clauses += self.clauses(part)
        self.checked(len(clauses))
        self.checked(count * sum(map(len, clauses)) // _LITERALS)
        chosen = product(*(found[place] for place in sorted(taken)))
        return list(dict.fromkeys(_joined(each, clauses) for each in chosen))

    def clauses(self, formula: Formula) -> list[Clause]:
        """What a formula is a conjunction of."""
        match formula:
            case int():
                return [(Literal((formula,), False),)]
            case All(parts):
                return self._all_clauses(parts)
            case Not(Not(part)):
                return self.clauses(part)
            case Not(Some(parts)):
                return self._all_clauses(map(Not, parts))
            case Some(parts):
                return self._one_of(parts)
            case Not(part):
                together, others = _constraints_of(part)
                negated = [Not(All(together))] if together and others else []
                return (
                    self._one_of([*negated, *map(Not, others)])
                    if others
                    else [(Literal(together, True),)]
                )

    def _all_clauses(self, parts: Iterable[Formula]) -> list[Clause]:
        found = dict.fromkeys(chain.from_iterable(map(self.clauses, parts)))
        self.checked(len(found))
        return list(found)

    def _one_of(self, parts: Iterable[Formula]) -> list[Clause]:
        """The clauses of a disjunction: each one of each part, together."""
        every: list[list[Clause]] = []
        for part in parts:
            together, others = _constraints_of(part)
            every.append(self.clauses(part) if others else [(Literal(together, False),)])
        count = prod(map(len, every))
        self.checked(count)
        self.checked(count * sum(len(clause) for own in every for clause in own) // _LITERALS)
        return [tuple(dict.fromkeys(chain(*each))) for each in product(*every)]


def _constraints_of(formula: Formula) -> tuple[tuple[int, ...], list[Formula]]:
    """The constraints that a formula is a conjunction of, and what else it is one of."""
    parts = _flat(formula.parts) if isinstance(formula, All) else [formula]
    own = sorted({part for part in parts if isinstance(part, int)})
    return tuple(own), [part for part in parts if not isinstance(part, int)]


def _flat(parts: Iterable[Formula]) -> list[Formula]:
    """The parts of a conjunction, with those of conjunctions in it."""
    found: list[Formula] = []
    for part in parts:
        found += _flat(part.parts) if isinstance(part, All) else [part]
    return found


def _is_open(filters: Sequence[Conjunction]) -> bool:
    """Whether some filter has no constraint that must hold."""
    return not all(filter.constraints for filter in filters)


def _joined(parts: Iterable[Conjunction], clauses: Iterable[Clause]) -> Conjunction:
    """All of some filters, and clauses; a clause that is one conjunction of constraints is theirs.

    The constraints stay in their order, each once.
    """
    own: dict[int, None] = {}
    kept: dict[Clause, None] = {}
    for part in parts:
        own.update(dict.fromkeys(part.constraints))
        kept.update(dict.fromkeys(part.clauses))
    for clause in clauses:
        if len(clause) == 1 and not clause[0].is_negated:
            own.update(dict.fromkeys(clause[0].constraints))
        else:
            kept[clause] = None
    return Conjunction((*own,), (*kept,))
