r"""What a subscription of events may say, and what it means: a disjunction of filters.

::

    disjunction = conjunction ("or" conjunction)*
    conjunction = term ("and" term)*
    term        = "not" term | "(" disjunction ")" | constraint
    constraint  = path ("=" | "!=" | "<" | "<=" | ">" | ">=") (value | field)
                | path ("prefix" | "suffix" | "contains") (string | field)
                | path "in" "(" value ("," value)* ")"
                | path "between" value "and" value
                | path ("=" | "!=") "null"
                | path ("exists" | "absent") | path ("like" | "matches") string
                | path "cidr" (string | "(" string ("," string)* ")")
                | path "[]" ("." (constraint | "(" disjunction ")") | what follows a path)
                | "*" what follows "[]"
    path        = name (("." name) | "[" position "]")*
    name        = letters, digits and _, with : - inside (no digit first); or any text in `…`;
                  or . behind [], for the element itself
    field       = "i"? "field" "(" path ")"
    value       = string | number | "true" | "false"
    string      = JSON's; or the same in single quotes; with i before it, case does not matter;
                  with r, a backslash stays as it is
    number      = JSON's: an integer within 64 bits, or a float

A *filter* is a conjunction of constraints, and of *clauses* for what is negated, or would multiply;
any expression is a disjunction of filters, which is what :func:`parse_filters` makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import NoReturn

from tamis.core.errors import SubscriptionError, SubscriptionLimitError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.attributes import (
    EVERY,
    INSTEAD,
    ITSELF,
    KEYWORDS,
    MARKS,
    SEPARATOR,
    Path,
    address_name,
    attribute_of,
    elements_name,
    folded_name,
    null_name,
    path_name,
)
from tamis.language.conjunctions import All, Conjunction, Formula, Not, Some, conjunctions
from tamis.language.constraints import (
    Clause,
    Constant,
    Constraint,
    Field,
    Filter,
    Literal,
    constraint_key,
    constraints_in,
    print_filters,
)
from tamis.language.eventwords import (
    COMPARED_NAME,
    HINTS,
    JOINS,
    OPERATORS,
    ORDER,
    PARTS,
    PATTERNS,
    SAME,
    Tokens,
    cut,
    is_folded,
    quoted,
)
from tamis.language.networks import network_bits, network_instead
from tamis.language.patterns import asks_for_a_part, pattern_of
from tamis.language.regex import RegexError
from tamis.language.singular import Condition, renumbered, singular


def parse_filters(
    expression: str, limits: Limits = DEFAULT_LIMITS, *, is_singular: bool = False
) -> tuple[Filter, ...]:
    """The filters that an expression is a disjunction of, each once; so with their constraints.

    ``in`` with values of several kinds becomes one for each kind. Errors are a
    ``SubscriptionSyntaxError``, with the place, or a ``SubscriptionLimitError``.

    Args:
        is_singular: for events that have no list at any path that is written with ``[]``: see
            :mod:`.singular`.

    >>> for filter in parse_filters('area = "a1" and (temp > 30 or wind > 20.5)'):
    ...     print(filter[0], filter[1][1:])
    Constraint(name='area', operator='=', constant='a1') ('>', 30)
    Constraint(name='area', operator='=', constant='a1') ('>', 20.5)
    """
    if len(expression) > limits.subscription_chars:
        has = f"the expression has {len(expression):,} characters"
        limit = f"the limit is {limits.subscription_chars:,} (subscription_chars)"
        raise SubscriptionLimitError(f"{has}: {limit}")
    return _Parser(expression, limits, is_singular).parse()


def is_filter(expression: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether an expression is one about events.

    >>> is_filter("area prefix 'x'"), is_filter("temp > 30"), is_filter("/area")
    (True, True, False)
    """
    try:
        parse_filters(expression, limits)
    except SubscriptionError:
        return False
    return True


def reads_as_xpath(expression: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether a valid XPath expression was most likely meant for events.

    It compares names with constants, and has no step: as XPath it is about root elements.

    >>> reads_as_xpath("a = 1 and b > 2"), reads_as_xpath("a = 1 and @b > 2")
    (True, False)
    """
    if COMPARED_NAME.match(expression) is None or not is_filter(expression, limits):
        return False
    found = parse_filters(expression, limits)
    names = {each.name for filter in found for each in constraints_in(filter)}
    return not any(":" in name for name in names)


_EACH = -1
_SHOWN_MAX = 10**9
_ELEMENTS_MAX = 16
"""For each [] around, matching takes another matcher."""


class _Parser(Tokens):
    """Reads one expression; each part of it becomes its filters."""

    def __init__(self, expression: str, limits: Limits, is_singular: bool) -> None:
        self.limits, self.is_singular = limits, is_singular
        self.count = 0  # of constraints, as they are written
        self.depth = 0  # how many parentheses are around
        self.elements = int(expression[:1] == ITSELF)  # how many [] are around
        self.codes: dict[tuple[object, ...], int] = {}
        self.constraints: list[Constraint] = []
        self.conditions: dict[str, Condition] = {}  # on elements
        super().__init__(expression, self.elements)

    def parse(self) -> tuple[Filter, ...]:
        start = self.token.position
        try:
            formula = self._disjunction(0)
            if self.token.kind != "end":
                self.expected("and, or, or the end")
            return self._filters(formula, start)
        except RecursionError:
            self.reached("parentheses are nested deeper than Python can follow")

    def _filters(self, formula: Formula, start: int) -> tuple[Filter, ...]:
        most, refuse = self.limits.subscription_filters, partial(self._has_too_many, start)
        return tuple(map(self._filter, conjunctions(formula, most, refuse)))

    def _filter(self, found: Conjunction) -> Filter:
        clauses = (
            Clause(tuple(Literal(self._constraints(own), negated) for own, negated in clause))
            for clause in found.clauses
        )
        return *self._constraints(found.constraints), *clauses

    def _constraints(self, codes: Iterable[int]) -> tuple[Constraint, ...]:
        return tuple(self.constraints[code] for code in codes)

    def _disjunction(self, depth: int) -> Formula:
        found = [self._conjunction(depth)]
        while self.takes("or"):
            found.append(self._conjunction(depth))
        return Some(tuple(found)) if len(found) > 1 else found[0]

    def _conjunction(self, depth: int) -> Formula:
        found = [self._term(depth)]
        while self.takes("and"):
            found.append(self._term(depth))
        return All(tuple(found)) if len(found) > 1 else found[0]

    def _term(self, depth: int) -> Formula:
        negated = False
        while self.token.kind == "word" and self.takes("not"):
            negated = not negated
        if self.token.text == "(":
            found = self._in_parentheses(depth)
        else:
            self.depth = depth
            found = self._constraint()
        return Not(found) if negated else found

    def _in_parentheses(self, depth: int) -> Formula:
        if depth == self.limits.subscription_nesting:
            message = f"parentheses are nested deeper than {depth:,} (subscription_nesting)"
            self.reached(message, self.token.position)
        self.next()
        found = self._disjunction(depth + 1)
        if not self.takes(")"):
            self.expected("and, or, or )")
        return found

    def _code(self, constraint: Constraint) -> int:
        code = self.codes.setdefault(constraint_key(constraint), len(self.codes))
        if code == len(self.constraints):
            self.constraints.append(constraint)
        return code

    def _constraint(self) -> Formula:
        self.count += 1
        if self.count > (most := self.limits.subscription_predicates):
            limit = f"the limit subscription_predicates = {most:,}"
            self.reached(f"there are more constraints than {limit}")
        path = self._path()
        if path[-1] == _EACH:
            return self._elements(path[:-1])
        return self._about(path_name(path))

    def _about(self, name: str) -> Formula:
        """What is asked of an attribute."""
        token = self.token
        operator = token.text
        if operator in (*SAME, *ORDER, *PARTS):
            self.next()
            if operator in SAME and self.takes("null"):
                own = name if operator == "!=" else null_name(name)
                return self._code(Constraint(own, "exists"))
            return self._code(self._compared(name, operator))
        if self.takes("exists"):
            return self._code(Constraint(name, "exists"))
        if self.takes("absent"):
            return Not(self._code(Constraint(name, "exists")))
        if operator in PATTERNS:
            self.next()
            return self._pattern(name, operator)
        if self.takes("cidr"):
            return self._networks(name)
        if self.takes("between"):
            return self._between(name)
        if self.takes("in"):
            return self._lists(name)
        hint = "of a boolean, write = true" if token.kind == "end" or token.text in JOINS else None
        self.expected(f"an operator ({OPERATORS})", hint)

    def _compared(self, name: str, operator: str) -> Constraint:
        """A constraint with one value, or field, which comes next."""
        if self.token.kind == "word" and self.token.text in ("i", "field"):
            return self._compared_field(name, operator)
        value, at = self.value("a string" if operator in PARTS else "a value")
        if operator in ORDER and isinstance(value, bool):
            self.fail("booleans have no order", at, "write = or !=")
        if is_folded(at) and operator in ORDER:
            self.fail("strings without case have no order", at, "leave out the i")
        if operator in PARTS and not isinstance(value, str):
            message = f"{operator} asks for a part of a string, not {cut(at.text)}"
            self.fail(message, at, 'write "…"')
        return Constraint(folded_name(name) if is_folded(at) else name, operator, value)

    def _compared_field(self, name: str, operator: str) -> Constraint:
        """A comparison with another attribute."""
        token, has_case = self.token, not self.takes("i")
        if not self.takes("field") or not self.takes("("):
            word = token.text
            self.fail(f"expected a value, found {cut(word)!r}", token, quoted(word))
        if operator in ORDER and not has_case:
            self.fail("strings without case have no order", token, "leave out the i")
        path, at = self._path(), self.token
        if path[-1] == _EACH:
            self.fail("a field to compare with is one value", at, "write [0] for a position")
        if not self.takes(")"):
            self.expected(")")
        itself = (ITSELF,)
        if self.elements and (attribute_of(name).path == itself) != (path == itself):
            hint = "inside [] and *, field(…) is a field of the element"
            self.fail("an element that is a value has no fields", token, hint)
        other = path_name(path)
        if has_case:
            return Constraint(name, operator, Field(other))
        return Constraint(folded_name(name), operator, Field(folded_name(other)))

    def _pattern(self, name: str, operator: str) -> Formula:
        """A pattern; one that asks for parts of strings alone is the constraints for these."""
        value, token = self.value("a pattern", is_regex=operator == "matches")
        if not isinstance(value, str):
            self.fail(f"{operator} asks for a pattern, not {cut(token.text)}", token, 'write "…"')
        folds = is_folded(token)
        own = folded_name(name) if folds else name
        try:
            pattern = pattern_of(operator, value, own)
            if pattern.is_exact:
                parts = [self._code(Constraint(own, *part)) for part in pattern.literals]
                return All(tuple(parts)) if len(parts) > 1 else parts[0]
            pattern.dfa(self.limits.subscription_states)
        except RegexError as error:
            place = f"{error.message}, at its character {error.position + 1}"
            self.fail(place, token, error.hint)
        except SubscriptionLimitError as error:
            self.reached(error.message, token.position)
        return self._code(Constraint(own, operator, value))

    def _networks(self, name: str) -> Formula:
        """A network, or several in parentheses."""
        found: list[Formula] = []
        is_list = self.takes("(")
        while True:
            value, token = self.value("a network")
            if not isinstance(value, str) or is_folded(token):
                self.fail("a network is a string", token, network_instead(""))
            try:
                bits = network_bits(value)
            except ValueError as error:
                message = f"{cut(value)!r} is no network: {error}"
                self.fail(message, token, network_instead(value))
            found.append(self._code(Constraint(address_name(name), "prefix", bits)))
            if not is_list or self.takes(")"):
                return Some(tuple(found)) if len(found) > 1 else found[0]
            if not self.takes(","):
                self.expected(", or )")

    def _between(self, name: str) -> Formula:
        """The two constraints of ``between``; both values belong to it."""
        low, at = self.value("a value")
        if not self.takes("and"):
            self.expected("and, and the greatest value", "write between 1 and 2")
        high, behind = self.value("a value")
        for value, token in ((low, at), (high, behind)):
            if isinstance(value, bool) or is_folded(token):
                self.fail("between asks for an order: of numbers, or of strings as they are", token)
        if isinstance(low, str) != isinstance(high, str):
            self.fail("both values of between are numbers, or both are strings", behind)
        bounds = Constraint(name, ">=", low), Constraint(name, "<=", high)
        return All(tuple(map(self._code, bounds)))

    def _lists(self, name: str) -> Formula:
        """The list behind ``in``, which is one for each kind of its values."""
        if not self.takes("("):
            self.expected("( and values")
        kinds: dict[tuple[type, str], dict[Constant, None]] = {}
        found: list[Formula] = []
        while True:
            if self.takes("null"):
                found.append(self._code(Constraint(null_name(name), "exists")))
            else:
                value, at = self.value("a value")
                kind = float if type(value) is int else type(value)
                own = folded_name(name) if is_folded(at) else name
                kinds.setdefault((kind, own), {})[value] = None
            if self.takes(")"):
                break
            if not self.takes(","):
                self.expected(", or )")
        lists = (Constraint(own, "in", (*items,)) for (_, own), items in kinds.items())
        found += map(self._code, lists)
        return Some(tuple(found)) if len(found) > 1 else found[0]

    def _elements(self, path: Path) -> Formula:
        """A condition on some element of a list, which is a formula of its own."""
        outer = self.codes, self.constraints
        self.codes, self.constraints = {}, []
        self.elements += 1
        if self.elements > _ELEMENTS_MAX:
            self.reached(f"more than {_ELEMENTS_MAX} [] are inside each other")
        at = self.token
        start, is_named = at.position, self.takes(".")
        if is_named and self.token.text == "(":
            formula = self._in_parentheses(self.depth)
        elif is_named:
            formula = self._constraint()
        else:
            formula = self._about(ITSELF)
        if path == (EVERY,) and any(
            attribute_of(each.name).path != (ITSELF,) for each in self.constraints
        ):
            hint = 'write *.(. prefix "a" and not . = "ab"), or [] for some element of a list'
            self.fail("* is any string, number or boolean, which has no fields", at, hint)
        self._filters(formula, start)  # so that it is refused here, if ever
        together = self._of_all_strings(formula) if path == (EVERY,) else None
        is_one, text = isinstance(formula, int), self._text(formula)
        if is_one and text.startswith(". "):
            text = text.removeprefix(".")
        else:
            text = f".{text}" if is_one else f".({text})"
        self.elements -= 1
        name = elements_name(path, text)
        self.conditions[name] = formula, self.constraints
        self.codes, self.constraints = outer
        if together is not None:
            return self._code(together)
        if self.is_singular and not self.elements:
            found = singular(name, self.conditions)
            if found is not None:
                return renumbered(found[0], list(map(self._code, found[1])))
        return self._code(Constraint(name, "exists"))

    def _of_all_strings(self, formula: Formula) -> Constraint | None:
        """A constraint on any value of events that all strings together answer, or None."""
        if not isinstance(formula, int):
            return None
        name, operator, constant = self.constraints[formula]
        if not isinstance(constant, str) or SEPARATOR in constant or INSTEAD in constant:
            return None
        own = name[:-1] + EVERY
        if operator == "like":
            if not asks_for_a_part(constant):
                return None
            with suppress(SubscriptionLimitError):  # it may need more states
                pattern_of(operator, constant, own).dfa(self.limits.subscription_states)
                return Constraint(own, operator, constant)
            return None
        return Constraint(own, operator, constant) if operator == "contains" else None

    def _text(self, formula: Formula) -> str:
        """A formula as it is written: as filters it may be much longer."""
        match formula:
            case int():
                return print_filters([[self.constraints[formula]]])
            case Not(part):
                return f"not {self._text(part) if isinstance(part, int) else self._group(part)}"
            case All(parts):
                return " and ".join(map(self._group, parts))
            case Some(parts):
                return " or ".join(map(self._group, parts))

    def _group(self, formula: Formula) -> str:
        text = self._text(formula)
        return f"({text})" if isinstance(formula, All | Some) else text

    def _path(self) -> Path:
        """The path of an attribute; its last part is ``_EACH`` where [] is behind it."""
        path: list[str | int] = [*self._name()]
        while True:
            if len(path) > (most := self.limits.subscription_nesting):
                self.reached(f"a path has more than {most:,} parts (subscription_nesting)")
            if path == [ITSELF]:  # of an element, there is nothing behind it
                return (ITSELF,)
            if path == [EVERY]:
                return (EVERY, _EACH)
            if self.takes("["):
                position = self.token
                if position.kind == "number":
                    if not position.text.isdecimal():
                        self.fail("a position is a whole number from 0 on", position)
                    self.next()
                    path.append(int(position.text[:18]))
                if not self.takes("]"):
                    self.expected("a position, or ]")
                if position.kind != "number":
                    return (*path, _EACH)
            elif self.takes("."):
                path += self._name(is_first=False)
            else:
                return tuple(path)

    def _name(self, is_first: bool = True) -> list[str]:
        """A name in backquotes, or names with dots between them."""
        token = self.token
        if is_first and self.elements and self.takes("."):
            return [ITSELF]
        if is_first and self.takes("*"):
            return [EVERY]
        if token.kind == "quoted":
            self.next()
            if len(token.text) == 2:
                self.fail("the name is empty", token)
            name = self.encodable(token.text[1:-1].replace("``", "`"), token)
            if any(mark in name for mark in MARKS):
                self.fail("there are no such control characters in names", token)
            return [name]
        if token.kind != "word":
            hint = "a name is written without quotes, or in backquotes"
            self.expected("the name of an attribute", hint if token.kind == "string" else None)
        if is_first and token.text in KEYWORDS:
            hint = HINTS.get(token.text, f"as a name it is written in backquotes: `{token.text}`")
            if token.text in ("exists", "in", *PARTS):
                hint = f"the name comes first: temp {token.text} …; {hint}"
            message = f"expected the name of an attribute, found {cut(token.text)!r}"
            self.fail(message, token, hint)
        names = token.text.split(".")
        if not all(names):
            hint = f"a name with dots is written in backquotes: `{cut(token.text)}`"
            self.fail("there is no name between two dots", token, hint)
        self.next()
        return names

    def _has_too_many(self, start: int, count: int) -> NoReturn:
        most = self.limits.subscription_filters
        shown = f"{count:,}" if count < _SHOWN_MAX else f"more than {_SHOWN_MAX:,}"
        has = f"as a disjunction of conjunctions it has {shown} filters"
        self.reached(f"{has}: the limit is {most:,} (subscription_filters)", start)
