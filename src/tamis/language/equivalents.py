"""What to write instead of an expression that is refused: one that means the same.

Each rule keeps what an expression means in every document, so that a hint may say "write …". Where
no rule leads to something that is supported, there is no such hint. A test compares all of them
with lxml (``tests/language/test_hints.py``).

``string(b) = '1'`` asks for the *first* ``b``, and ``b = '1'`` for any. Along child steps the first
node is ``b[1]``; elsewhere ``starts-with()`` and ``string-length()``, which take the first node
too, compare the string.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeGuard

from tamis.errors import SubscriptionError
from tamis.language.grammar import (
    Call,
    FilterExpression,
    LocationPath,
    Negation,
    Number,
    Operation,
    StepSyntax,
    String,
    Syntax,
    Token,
    Variable,
    walk,
)
from tamis.language.printer import TooLongError, is_descend, print_syntax
from tamis.language.values import compare, xpath_number

_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">="))
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STRING_FUNCTIONS = ("contains", "starts-with", "string-length", "normalize-space")
_BOOLEANS = frozenset(("not", "true", "false", "boolean", "contains", "starts-with", "lang"))
_NUMBERS = frozenset(
    ("last", "position", "count", "string-length", "number", "sum", "floor", "ceiling", "round")
)
_OF_CONTEXT = frozenset(("last", "position", "lang"))
_PARTS_MAX = 10_000
"""Parts of expressions that are looked at: rules repeat some parts."""


class Equivalent(NamedTuple):
    """An expression that means the same.

    Attributes:
        selects: it also selects the same nodes, where the other one selects any.
    """

    text: str
    selects: bool


def equivalent(
    syntax: Syntax, check: Callable[[Syntax], object], *, as_boolean: bool = True
) -> Equivalent | None:
    """A supported expression that means the same, if one is known.

    Args:
        check: raises a ``SubscriptionError`` for what is not supported.
        as_boolean: nothing but the truth of it matters, and the nodes of a path.

    >>> from tamis.language.grammar import parse_syntax
    >>> from tamis.language.xpath import Meaning
    >>> from tamis.limits import Limits
    >>> syntax = parse_syntax("//a[string(b) = '1'][/c]", Limits())
    >>> equivalent(syntax, Meaning("", {}).query)
    Equivalent(text="//a[b[1] = '1'] and /c", selects=False)
    """
    selects = _type(syntax) == "nodes"
    rewriter = _Rewriter()
    try:
        exact = rewriter.value(syntax) if selects or not as_boolean else rewriter.truth(syntax)
        for candidate in (exact, _closed_beside(exact)) if as_boolean else (exact,):
            text = print_syntax(candidate, _PARTS_MAX)
            try:
                check(candidate)
            except SubscriptionError:
                continue
            return Equivalent(text, not selects or _type(candidate) == "nodes")
    except (TooLongError, RecursionError):
        pass
    return None


class _Rewriter:
    """Applies the rules to all parts of an expression, the inner ones first."""

    def __init__(self) -> None:
        self.left = _PARTS_MAX

    def value(self, syntax: Syntax) -> Syntax:
        """An expression of the same value: the same nodes, string, number or boolean."""
        self.look_at()
        match syntax:
            case LocationPath(steps=steps):
                return _abbreviated(replace(syntax, steps=tuple(self.steps(steps, []))))
            case FilterExpression():
                return self.measured(self.filtered(syntax))
            case Call():
                return self.call(syntax)
            case Operation():
                return self.measured(self.operation(syntax))
            case Negation(position=position, odd=odd, operand=operand):
                inner = self.value(operand)
                if isinstance(inner, Number | String):
                    return Number(position, -_number(inner) if odd else _number(inner))
                return replace(syntax, operand=inner)
        return syntax

    def measured(self, syntax: Syntax) -> Syntax:
        for _ in walk(syntax):
            self.look_at()
        return syntax

    def look_at(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooLongError

    def truth(self, syntax: Syntax) -> Syntax:
        """An expression that is the same as a boolean."""
        value = self.value(syntax)
        match value:
            case Call(name="string") if (text := _of_string(value)) is not value:
                return _operation(">", _call("string-length", text), Number(0, 0.0))
            case Call(name="count", arguments=(path,)) if not _is_countable(path):
                return path
        return value

    # -- functions and operators -------------------------------------------------------------------

    def call(self, syntax: Call) -> Syntax:
        name = syntax.name
        if name in ("not", "boolean") and len(syntax.arguments) == 1:
            return replace(syntax, arguments=(self.truth(syntax.arguments[0]),))
        arguments = tuple(map(self.value, syntax.arguments))
        if name in _STRING_FUNCTIONS and arguments:
            arguments = (_of_string(arguments[0]), *arguments[1:])
        if name == "string" and len(arguments) == 1 and _type(arguments[0]) == "string":
            return arguments[0]
        return replace(syntax, arguments=arguments)

    def operation(self, syntax: Operation) -> Syntax:
        operator = syntax.operators[0].text
        if operator in ("and", "or"):
            return replace(syntax, operands=tuple(map(self.truth, syntax.operands)))
        operands = tuple(map(self.value, syntax.operands))
        if operator in _COMPARISONS:
            if len(operands) == 2:
                return _comparison(operator, *operands)
        elif operator != "|":
            numbers = [_number(each) for each in operands if _is_literal(each)]
            if len(numbers) == len(operands):
                result = _computed(syntax.operators, numbers)
                if math.isfinite(result):
                    return Number(syntax.position, result)
        return replace(syntax, operands=operands)

    # -- paths -------------------------------------------------------------------------------------

    def filtered(self, syntax: FilterExpression) -> Syntax:
        """``(a | b)[p]/c`` is ``a[p]/c | b[p]/c``, unless the predicate is a position."""
        primary = self.value(syntax.primary)
        predicates = tuple(map(self.predicate, syntax.predicates))
        paths = primary.operands if _is_union(primary) else (primary,)
        found: list[Syntax] = []
        for path in paths:
            if not _is_path(path) or any(map(_is_positional, predicates)):
                steps = tuple(self.steps(syntax.steps, []))
                return replace(syntax, primary=primary, predicates=predicates, steps=steps)
            done = list(path.steps)
            for predicate in predicates:
                _attach(done, predicate)
            steps = tuple(self.steps(syntax.steps, done))
            found.append(_abbreviated(replace(path, steps=steps)))
        return found[0] if len(found) == 1 else _operation("|", *found)

    def steps(self, steps: Sequence[StepSyntax], done: list[StepSyntax]) -> list[StepSyntax]:
        """Steps behind others: ``a/b/..`` is ``a[b]``, ``a/b[../c]`` is ``a[c]/b``."""
        for given in steps:
            predicates = tuple(map(self.predicate, given.predicates))
            if given.has_name and given.axis != "attribute":
                predicates = tuple(map(_of_namespaces, predicates))
            step = replace(given, predicates=predicates)
            if step.axis != "parent" or not done or not _turn_back(done):
                done.append(step)
                _hoist_to_parent(done)
            elif step.test != "node()" or step.predicates:
                _attach(done, LocationPath(0, False, (replace(step, axis="self"),)))
        return done

    def predicate(self, syntax: Syntax) -> Syntax:
        if _type(syntax) == "number":
            return self.value(syntax)
        truth = self.truth(syntax)
        match truth:
            case Operation(operands=(Call(name="position"), Number() as number)):
                return number if truth.operators[0].text == "=" else truth
        return truth


# -- comparisons -----------------------------------------------------------------------------------


def _comparison(operator: str, left: Syntax, right: Syntax) -> Syntax:
    if isinstance(left, Number | String):
        left, right, operator = right, left, _FLIPPED.get(operator, operator)
    if not isinstance(right, Number | String):
        return _operation(operator, left, right)
    number = _number(right)
    found: Syntax | None = None
    match left:
        case Number() | String():
            found = _of_literals(operator, left, right)
        case Negation(odd=odd, operand=operand) if not math.isnan(number):
            operator = _FLIPPED.get(operator, operator) if odd else operator
            found = _of_number(operator, operand, -number if odd else number)
        case Call(name="count", arguments=(path,)) if not _is_countable(path):
            found = _of_count(operator, path, number)
        case Call(name="string", arguments=arguments):
            nodes = arguments[0] if arguments else _HERE
            if isinstance(right, String) and operator in ("=", "!="):
                found = _of_text(operator, nodes, right)
            elif not math.isnan(number):
                found = _of_number(operator, nodes, number)
        case Call(name="number", arguments=arguments) if not math.isnan(number):
            found = _of_number(operator, arguments[0] if arguments else _HERE, number)
        case Call(name="substring", arguments=(text, Number(value=1.0), Number(value=length))):
            if isinstance(right, String) and len(right.value) == length > 0:
                starts = _call("starts-with", _of_string(text), right)
                found = {"=": starts, "!=": _call("not", starts)}.get(operator)
    return _operation(operator, left, right) if found is None else found


def _of_literals(operator: str, left: Number | String, right: Number | String) -> Syntax:
    if isinstance(left, String) and isinstance(right, String) and operator in ("=", "!="):
        is_true = (left.value == right.value) == (operator == "=")
    else:
        is_true = compare(operator, _number(left), _number(right))
    return _call("true" if is_true else "false")


def _of_count(operator: str, path: Syntax, number: float) -> Syntax | None:
    """``count(path) > 0`` is ``path``."""
    of_none, of_one, of_many = (compare(operator, n, number) for n in (0.0, 1.0, math.inf))
    if of_one != of_many or (number >= 1 and number.is_integer()):
        return None
    if of_none == of_one:
        return _call("true" if of_none else "false")
    return path if of_one else _call("not", path)


def _of_text(operator: str, nodes: Syntax, literal: String) -> Syntax | None:
    """``string(nodes)`` compared with a string."""
    if _type(nodes) != "nodes":
        return None
    length = _call("string-length", nodes)
    if not literal.value:
        return _operation("=" if operator == "=" else ">", length, Number(0, 0.0))
    first = _first(nodes)
    if first is not None:
        found = _operation("=", first, literal)
    else:
        starts = _call("starts-with", nodes, literal)
        found = _operation(
            "and", starts, _operation("=", length, Number(0, float(len(literal.value))))
        )
    return found if operator == "=" else _call("not", found)


def _of_number(operator: str, operand: Syntax, number: float) -> Syntax | None:
    """``number(operand)`` compared with a number: NaN, of no node too, is unequal to all."""
    literal = Number(0, number)
    operand = _of_string(operand)
    if _type(operand) == "string":
        return _operation(operator, operand, literal)
    first = _first(operand)
    if first is None:
        return None
    if operator == "!=":
        return _call("not", _operation("=", first, literal))
    return _operation(operator, first, literal)


def _first(nodes: Syntax) -> Syntax | None:
    """The path to the first node of a path, if that is one: ``a[b][1]/b[1]`` of ``a/b``."""
    match nodes:
        case Variable():
            return nodes
        case LocationPath(absolute=absolute, steps=steps):
            is_document = absolute
        case FilterExpression(primary=Variable(), steps=steps):
            is_document = False
        case _:
            return None
    found: list[StepSyntax] = []
    for index, given in enumerate(steps):
        step = given
        if step.axis == "child":
            rest = steps[index + 1 :]
            is_one = is_document and step.has_name  # a document has one element
            if not is_one and not (step.predicates and isinstance(step.predicates[-1], Number)):
                leads = (LocationPath(0, False, tuple(rest)),) if rest else ()
                step = replace(step, predicates=(*step.predicates, *leads, Number(0, 1.0)))
            is_document = False
        elif step.axis != "self" and not (step.axis == "attribute" and _is_of_one_name(step)):
            return None
        found.append(step)
    return replace(nodes, steps=tuple(found))


# -- paths -----------------------------------------------------------------------------------------


def _turn_back(done: list[StepSyntax]) -> bool:
    """Go back to the parents from the last step, if that can be said without doing so."""
    step = done[-1]
    if step.axis in ("child", "attribute"):
        done.pop()
        _attach(done, LocationPath(0, False, (step,)))
        return True
    if step.axis == "descendant" and not any(map(_is_positional, step.predicates)):
        child = LocationPath(0, False, (replace(step, axis="child"),))
        done[-1] = replace(_DESCEND, predicates=(child,))
        return True
    return False


def _attach(done: list[StepSyntax], predicate: Syntax) -> None:
    """Add a predicate to the last step."""
    if not done:
        done.append(_SELF)
    done[-1] = replace(done[-1], predicates=(*done[-1].predicates, predicate))


def _hoist_to_parent(done: list[StepSyntax]) -> None:
    """Give the step before the last one what the predicates of this one ask of the parent."""
    step = done[-1]
    if step.axis not in ("child", "attribute"):
        return
    found, predicates = _divided(step.predicates, _about_parent)
    if found:
        done.pop()
        for condition in found:
            _attach(done, condition)
        _hoist_to_parent(done)
        done.append(replace(step, predicates=predicates))


def _about_parent(syntax: Syntax) -> Syntax | None:
    """What a condition asks of the parent, as a condition of that, if it asks for nothing else."""
    match syntax:
        case LocationPath(absolute=False, steps=(StepSyntax(axis="parent") as up, *rest)):
            is_bare = up.test == "node()" and not up.predicates and rest
            steps = rest if is_bare else [replace(up, axis="self"), *rest]
            return replace(syntax, steps=tuple(steps))
        case Operation(operands=parts) | Call(arguments=parts) if parts:
            if isinstance(syntax, Call) and syntax.name in _OF_CONTEXT:
                return None
            are_literal = [isinstance(part, Number | String) for part in parts]
            found = [
                part if is_literal else _about_parent(part)
                for part, is_literal in zip(parts, are_literal, strict=True)
            ]
            inner = tuple(part for part in found if part is not None)
            if all(are_literal) or len(inner) < len(parts):
                return None
            if isinstance(syntax, Call):
                return replace(syntax, arguments=inner)
            return replace(syntax, operands=inner)
    return None


def _abbreviated(path: LocationPath | FilterExpression) -> Syntax:
    """``//b[ancestor::a]`` is ``//a//b``; any node that is an ``a`` is ``//a``."""
    if isinstance(path, FilterExpression) or not path.absolute or not path.steps:
        return path
    start, *rest = path.steps
    if is_descend(start) and rest and rest[0].axis == "child":
        below, *rest = rest
        found, predicates = _divided(below.predicates, _as_ancestor)
        below = replace(below, predicates=predicates)
        if len(found) == 1:
            step = _only_step(found[0])
            if step.axis == "ancestor":
                rest = [_DESCEND, below, *rest]
            else:
                rest = [replace(below, axis="descendant-or-self"), *rest]
            return replace(path, steps=(start, replace(step, axis="child"), *rest))
    elif start.axis == "descendant-or-self" and start.test == "node()":
        found, predicates = _divided(start.predicates, _as_self)
        if len(found) == 1:
            step = _only_step(found[0])
            step = replace(step, axis="child", predicates=(*step.predicates, *predicates))
            return replace(path, steps=(_DESCEND, step, *rest))
    return path


def _only_step(path: Syntax) -> StepSyntax:
    assert isinstance(path, LocationPath)
    (step,) = path.steps
    return step


def _as_self(syntax: Syntax) -> LocationPath | None:
    return _as_step(syntax, ("self",))


def _as_ancestor(syntax: Syntax) -> LocationPath | None:
    return _as_step(syntax, ("ancestor", "ancestor-or-self"))


def _as_step(syntax: Syntax, axes: tuple[str, ...]) -> LocationPath | None:
    """A condition as one step to elements on one of some axes, which asks all else in predicates.

    ``self::a/b = 1`` is ``self::a[b = 1]``.
    """
    match syntax:
        case LocationPath(absolute=False, steps=(step, *rest)):
            if step.axis not in axes or not step.has_name:
                return None
            if any(map(_is_positional, step.predicates)):
                return None
            leads = (LocationPath(0, False, tuple(rest)),) if rest else ()
            return replace(syntax, steps=(replace(step, predicates=(*step.predicates, *leads)),))
        case Operation(operators=(operator,), operands=(LocationPath() as path, literal)):
            if operator.text not in _COMPARISONS or not _is_literal(literal):
                return None
            found = _as_step(replace(path, steps=path.steps[:1]), axes)
            if found is None:
                return None
            steps = list(found.steps)
            inner = replace(path, steps=path.steps[1:] or (_SELF,))
            _attach(steps, _operation(operator.text, inner, literal))
            return replace(found, steps=tuple(steps))
    return None


def _divided(
    predicates: tuple[Syntax, ...], taken: Callable[[Syntax], Syntax | None]
) -> tuple[list[Syntax], tuple[Syntax, ...]]:
    """What is taken of predicates and of the operands of their ``and``, and what is left."""
    found: list[Syntax] = []
    kept: list[Syntax] = []
    for predicate in predicates:
        parts = _conjuncts(predicate)
        results = [None if _type(part) == "number" else taken(part) for part in parts]
        left = [part for part, result in zip(parts, results, strict=True) if result is None]
        if len(left) == len(parts) or (len(left) == 1 and _type(left[0]) == "number"):
            kept.append(predicate)
            continue
        found += [result for result in results if result is not None]
        kept += [_all(left)] if left else []
    return found, tuple(kept)


def _of_namespaces(condition: Syntax) -> Syntax:
    """``namespace-uri() = 'U'``, of an element, is ``self::Q{U}*``."""
    match condition:
        case Operation(
            operators=(operator,),
            operands=(Call(name="namespace-uri", arguments=arguments), String(value=uri)),
        ) if operator.text in ("=", "!=") and arguments in ((), (_HERE,)) and _is_uri(uri):
            found = LocationPath(0, False, (replace(_SELF, test=f"Q{{{uri}}}*"),))
            return found if operator.text == "=" else _call("not", found)
        case Operation(operators=(operator, *_)) if operator.text in ("and", "or"):
            return replace(condition, operands=tuple(map(_of_namespaces, condition.operands)))
        case Call(name="not", arguments=(argument,)):
            return _call("not", _of_namespaces(argument))
    return condition


def _is_uri(text: str) -> bool:
    """Whether a text can stand between the braces of ``Q{…}``, which normalize white space."""
    return not set(text) & set("{}") and text == " ".join(text.split())


# -- conditions about the whole document -----------------------------------------------------------


def _closed_beside(syntax: Syntax) -> Syntax:
    """An expression that is as true: ``//a[/b]`` is true where ``//a and /b`` is."""
    match syntax:
        case Operation(operators=(operator, *_), operands=operands):
            if operator.text in ("and", "or"):
                return replace(syntax, operands=tuple(map(_closed_beside, operands)))
        case Call(name="not" | "boolean", arguments=(argument,)):
            return replace(syntax, arguments=(_closed_beside(argument),))
    rest, conditions = _without_closed(syntax)
    return _all([rest, *map(_closed_beside, conditions)])


def _without_closed(syntax: Syntax) -> tuple[Syntax, list[Syntax]]:
    """What is left without the conditions of predicates that are about the document alone."""
    match syntax:
        case LocationPath(steps=steps):
            found: list[Syntax] = []

            def taken(condition: Syntax) -> Syntax | None:
                return condition if _is_closed(condition) else None

            kept_steps = []
            for step in steps:
                conditions, predicates = _divided(step.predicates, taken)
                found += conditions
                inner = [_without_closed(each) for each in predicates]
                found += [condition for _, more in inner for condition in more]
                kept_steps.append(replace(step, predicates=tuple(rest for rest, _ in inner)))
            return replace(syntax, steps=tuple(kept_steps)), found
        case Operation(operators=(operator,), operands=(LocationPath() as path, literal)):
            if operator.text in _COMPARISONS and isinstance(literal, Number | String):
                rest, found = _without_closed(path)
                return replace(syntax, operands=(rest, literal)), found
    return syntax, []


def _is_closed(syntax: Syntax) -> bool:
    """Whether an expression has the same value whatever its context node is."""
    match syntax:
        case Number() | String():
            return True
        case LocationPath(absolute=absolute):
            return absolute
        case FilterExpression(primary=inner) | Negation(operand=inner):
            return _is_closed(inner)
        case Operation(operands=parts):
            return all(map(_is_closed, parts))
        case Call(name=name, arguments=parts):
            is_of_context = name in _OF_CONTEXT or (not parts and name not in ("true", "false"))
            return not is_of_context and all(map(_is_closed, parts))
    return False


# -- parts -----------------------------------------------------------------------------------------


def _type(syntax: Syntax) -> Literal["nodes", "string", "number", "boolean"]:
    """The type of an expression; variables stand for nodes."""
    match syntax:
        case Number() | Negation():
            return "number"
        case String():
            return "string"
        case Operation(operators=(operator, *_)):
            if operator.text == "|":
                return "nodes"
            is_boolean = operator.text in ("and", "or") or operator.text in _COMPARISONS
            return "boolean" if is_boolean else "number"
        case Call(name=name) if name != "id":
            return "boolean" if name in _BOOLEANS else "number" if name in _NUMBERS else "string"
    return "nodes"


def _is_path(syntax: Syntax) -> TypeGuard[LocationPath | FilterExpression]:
    """Whether an expression is a path with steps, or one from a variable."""
    is_of_variable = isinstance(syntax, FilterExpression) and isinstance(syntax.primary, Variable)
    return is_of_variable or isinstance(syntax, LocationPath)


def _is_positional(predicate: Syntax) -> bool:
    """Whether a predicate may depend on the position of a node."""
    calls = (part.name for part in walk(predicate) if isinstance(part, Call))
    return _type(predicate) == "number" or not _OF_CONTEXT.isdisjoint(calls)


def _is_literal(syntax: Syntax) -> TypeGuard[Number | String]:
    return isinstance(syntax, Number | String)


def _is_union(syntax: Syntax) -> TypeGuard[Operation]:
    return isinstance(syntax, Operation) and syntax.operators[0].text == "|"


def _is_of_one_name(step: StepSyntax) -> bool:
    return step.has_name and "*" not in step.test.rpartition("}")[2]


def _is_countable(path: Syntax) -> bool:
    """Whether count() of a path is supported."""
    return isinstance(path, LocationPath) and all(
        step.axis in ("child", "attribute") for step in path.steps
    )


def _of_string(syntax: Syntax) -> Syntax:
    """What may stand for ``string(…)`` where a string is needed."""
    match syntax:
        case Call(name="string", arguments=()):
            return _HERE
        case Call(name="string", arguments=(argument,)) if _type(argument) in ("nodes", "string"):
            return argument
    return syntax


def _number(literal: Number | String) -> float:
    return xpath_number(literal.value) if isinstance(literal, String) else literal.value


def _computed(operators: Sequence[Token], numbers: Sequence[float]) -> float:
    """What a chain of arithmetic operators comes to; NaN where it divides by 0."""
    result = numbers[0]
    for operator, number in zip(operators, numbers[1:], strict=True):
        match operator.text:
            case "+":
                result += number
            case "-":
                result -= number
            case "*":
                result *= number
            case "div":
                result = result / number if number else math.nan
            case _:
                is_defined = number and math.isfinite(result)
                result = math.fmod(result, number) if is_defined else math.nan
    return result


def _conjuncts(syntax: Syntax) -> tuple[Syntax, ...]:
    if isinstance(syntax, Operation) and syntax.operators[0].text == "and":
        return syntax.operands
    return (syntax,)


def _all(conditions: Sequence[Syntax]) -> Syntax:
    return conditions[0] if len(conditions) == 1 else _operation("and", *conditions)


def _operation(operator: str, *operands: Syntax) -> Operation:
    token = Token("symbol", operator, 0)
    return Operation(0, (token,) * (len(operands) - 1), operands)


def _call(name: str, *arguments: Syntax) -> Call:
    return Call(0, name, arguments, 0)


_SELF = StepSyntax(0, "self", "node()", -1, ())
_DESCEND = replace(_SELF, axis="descendant-or-self")
_HERE = LocationPath(0, False, (_SELF,))
