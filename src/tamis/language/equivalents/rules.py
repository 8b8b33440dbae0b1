"""Rules that replace parts of syntax trees by others that mean the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import add, mul, sub, truediv
from typing import Literal, TypeGuard, TypeVar

from tamis.language import grammar as tree
from tamis.language.grammar import Call, LocationPath, Number, Operation, StepSyntax, String, Syntax
from tamis.language.printer import is_descend
from tamis.language.values import COMPARISONS, MIRRORED, compare, xpath_number

T = TypeVar("T")

_BOOLEANS = frozenset(("not", "true", "false", "boolean", "contains", "starts-with", "lang"))
_ARITHMETIC = {"+": add, "-": sub, "*": mul}
_DIVISIONS = {"div": truediv, "mod": math.fmod}
_NUMBERS = frozenset(
    ("last", "position", "count", "string-length", "number", "sum", "floor", "ceiling", "round")
)
OF_CONTEXT = frozenset(("last", "position", "lang"))

SELF = StepSyntax(0, "self", "node()", -1, ())
DESCEND = replace(SELF, axis="descendant-or-self")
HERE = LocationPath(0, False, (SELF,))


def type_of(syntax: Syntax) -> Literal["nodes", "string", "number", "boolean"]:
    """The type of an expression; variables stand for nodes."""
    match syntax:
        case Number() | tree.Negation():
            return "number"
        case String():
            return "string"
        case Operation(operators=(operator, *_)) if operator.text != "|":
            is_boolean = operator.text in ("and", "or") or operator.text in COMPARISONS
            return "boolean" if is_boolean else "number"
        case Call(name=name) if name != "id":
            return "boolean" if name in _BOOLEANS else "number" if name in _NUMBERS else "string"
    return "nodes"


def is_path(syntax: Syntax) -> TypeGuard[LocationPath | tree.FilterExpression]:
    """Whether an expression is a path with steps, or one from a variable."""
    if isinstance(syntax, tree.FilterExpression):
        return isinstance(syntax.primary, tree.Variable)
    return isinstance(syntax, LocationPath)


def is_positional(predicate: Syntax) -> bool:
    """Whether a predicate may depend on the position of a node."""
    calls = (part.name for part in tree.walk(predicate) if isinstance(part, Call))
    return type_of(predicate) == "number" or not OF_CONTEXT.isdisjoint(calls)


def is_literal(syntax: Syntax) -> TypeGuard[Number | String]:
    """Whether an expression is a constant."""
    return isinstance(syntax, Number | String)


def is_union(syntax: Syntax) -> TypeGuard[Operation]:
    """Whether an expression is a union of paths."""
    return isinstance(syntax, Operation) and syntax.operators[0].text == "|"


def is_of_one_name(step: StepSyntax) -> bool:
    """Whether a step names what it leads to, without a ``*``."""
    return step.has_name and "*" not in step.test.rpartition("}")[2]


def is_countable(path: Syntax) -> bool:
    """Whether count() of a path is supported."""
    axes = {step.axis for step in path.steps} if isinstance(path, LocationPath) else {"none"}
    return axes <= {"child", "attribute"}


def as_text(syntax: Syntax) -> Syntax:
    """What may stand for ``string(…)`` where a string is needed."""
    match syntax:
        case Call(name="string", arguments=()):
            return HERE
        case Call(name="string", arguments=(argument,)) if type_of(argument) in ("nodes", "string"):
            return argument
    return syntax


def number_of(literal: Number | String) -> float:
    """number() of a constant."""
    return xpath_number(literal.value) if isinstance(literal, String) else literal.value


def computed(operators: Sequence[tree.Token], numbers: Sequence[float]) -> float:
    """The result of a chain of arithmetic operators; NaN where it divides by 0."""
    result = numbers[0]
    for operator, number in zip(operators, numbers[1:], strict=True):
        is_defined = number and (operator.text == "div" or math.isfinite(result))
        if operator.text in _ARITHMETIC:
            result = _ARITHMETIC[operator.text](result, number)
        else:
            result = _DIVISIONS[operator.text](result, number) if is_defined else math.nan
    return result


def relative(*steps: StepSyntax) -> LocationPath:
    """A relative path of some steps."""
    return LocationPath(0, False, steps)


def operation(operator: str, *operands: Syntax) -> Syntax:
    """Operands, with an operator between them."""
    operators = (tree.Token("symbol", operator, 0),) * (len(operands) - 1)
    return Operation(0, operators, operands) if operators else operands[0]


def call(name: str, *arguments: Syntax) -> Call:
    """A call of a function."""
    return Call(0, name, arguments, 0)


def divided(
    predicates: tuple[Syntax, ...], extract: Callable[[Syntax], T | None]
) -> tuple[list[T], tuple[Syntax, ...]]:
    """Divide predicates and operands of ``and``: what ``extract`` makes of some, and the others."""
    extracted: list[T] = []
    others: list[Syntax] = []
    for predicate in predicates:
        parts: tuple[Syntax, ...] = (predicate,)
        if isinstance(predicate, Operation) and predicate.operators[0].text == "and":
            parts = predicate.operands
        results = [None if type_of(part) == "number" else extract(part) for part in parts]
        rest = [part for part, result in zip(parts, results, strict=True) if result is None]
        if len(rest) == len(parts) or (len(rest) == 1 and type_of(rest[0]) == "number"):
            others.append(predicate)
            continue
        extracted += (result for result in results if result is not None)
        others += [operation("and", *rest)] if rest else []
    return extracted, tuple(others)


# -- comparisons with constants --------------------------------------------------------------------


def comparison(operator: str, left: Syntax, right: Syntax) -> Syntax:
    """A comparison, or what is known to be equivalent to it."""
    if is_literal(left):
        left, right, operator = right, left, MIRRORED.get(operator, operator)
    if not is_literal(right):
        return operation(operator, left, right)
    number = number_of(right)
    found: Syntax | None = None
    match left:
        case Number() | String():
            found = _of_literals(operator, left, right)
        case tree.Negation(odd=odd, operand=operand) if not math.isnan(number):
            operator = MIRRORED.get(operator, operator) if odd else operator
            found = _of_number(operator, operand, -number if odd else number)
        case Call(name="count", arguments=(path,)) if not is_countable(path):
            found = _of_count(operator, path, number)
        case Call(name="string", arguments=arguments):
            nodes = arguments[0] if arguments else HERE
            if isinstance(right, String) and operator in ("=", "!="):
                found = _of_text(operator, nodes, right)
            elif not math.isnan(number):
                found = _of_number(operator, nodes, number)
        case Call(name="number", arguments=arguments) if not math.isnan(number):
            found = _of_number(operator, arguments[0] if arguments else HERE, number)
        case Call(name="substring", arguments=(text, Number(value=1.0), Number(value=length))):
            if isinstance(right, String) and len(right.value) == length > 0:
                starts = call("starts-with", as_text(text), right)
                found = {"=": starts, "!=": call("not", starts)}.get(operator)
    return operation(operator, left, right) if found is None else found


def _of_literals(operator: str, left: Number | String, right: Number | String) -> Syntax:
    if isinstance(left, String) and isinstance(right, String) and operator in ("=", "!="):
        is_true = (left.value == right.value) == (operator == "=")
    else:
        is_true = compare(operator, number_of(left), number_of(right))
    return call("true" if is_true else "false")


def _of_count(operator: str, path: Syntax, number: float) -> Syntax | None:
    """``count(path) > 0`` is ``path``."""
    of_none, of_one, of_many = (compare(operator, n, number) for n in (0.0, 1.0, math.inf))
    if of_one != of_many or (number >= 1 and number.is_integer()):
        return None
    if of_none == of_one:
        return call("true" if of_none else "false")
    return path if of_one else call("not", path)


def _of_text(operator: str, nodes: Syntax, literal: String) -> Syntax | None:
    if type_of(nodes) != "nodes":
        return None
    length = call("string-length", nodes)
    if not literal.value:
        return operation("=" if operator == "=" else ">", length, Number(0, 0.0))
    if (first := _first(nodes)) is not None:
        found = operation("=", first, literal)
    else:
        starts = call("starts-with", nodes, literal)
        is_as_long = operation("=", length, Number(0, float(len(literal.value))))
        found = operation("and", starts, is_as_long)
    return found if operator == "=" else call("not", found)


def _of_number(operator: str, operand: Syntax, number: float) -> Syntax | None:
    """``number(operand)`` compared with a number: NaN, of no node too, is unequal to all."""
    literal = Number(0, number)
    operand = as_text(operand)
    if type_of(operand) == "string":
        return operation(operator, operand, literal)
    if (first := _first(operand)) is None:
        return None
    if operator == "!=":
        return call("not", operation("=", first, literal))
    return operation(operator, first, literal)


def _first(nodes: Syntax) -> Syntax | None:
    """The path to the first node of a path, if that is one: ``a[b][1]/b[1]`` of ``a/b``."""
    match nodes:
        case tree.Variable():
            return nodes
        case LocationPath(absolute=is_document, steps=steps):
            pass
        case tree.FilterExpression(primary=tree.Variable(), steps=steps):
            is_document = False
        case _:
            return None
    found = list(steps)
    for index, step in enumerate(steps):
        if step.axis == "child":
            rest = steps[index + 1 :]
            is_one = is_document and step.has_name  # a document has one element
            if not is_one and not (step.predicates and isinstance(step.predicates[-1], Number)):
                leads = (relative(*rest),) if rest else ()
                predicates = (*step.predicates, *leads, Number(0, 1.0))
                found[index] = replace(step, predicates=predicates)
            is_document = False
        elif step.axis != "self" and not (step.axis == "attribute" and is_of_one_name(step)):
            return None
    return replace(nodes, steps=tuple(found))


# -- steps and predicates: parents and ancestors are asked for from above --------------------------


def turn_back(done: list[StepSyntax]) -> bool:
    """Go back to the parents from the last step, if that can be said without doing so."""
    step = done[-1]
    if step.axis in ("child", "attribute"):
        done.pop()
        attach(done, relative(step))
        return True
    if step.axis == "descendant" and not any(map(is_positional, step.predicates)):
        child = relative(replace(step, axis="child"))
        done[-1] = replace(DESCEND, predicates=(child,))
        return True
    return False


def attach(done: list[StepSyntax], predicate: Syntax) -> None:
    """Add a predicate to the last step."""
    if not done:
        done.append(SELF)
    done[-1] = with_predicate(done[-1], predicate)


def with_predicate(step: StepSyntax, predicate: Syntax) -> StepSyntax:
    """A step with one more predicate."""
    return replace(step, predicates=(*step.predicates, predicate))


def hoist_to_parent(done: list[StepSyntax]) -> None:
    """Give the step before the last one what the predicates of this one ask of the parent."""
    step = done[-1]
    if step.axis not in ("child", "attribute"):
        return
    found: list[Syntax]
    found, predicates = divided(step.predicates, _about_parent)
    if found:
        done.pop()
        for condition in found:
            attach(done, condition)
        hoist_to_parent(done)
        done.append(replace(step, predicates=predicates))


def _about_parent(syntax: Syntax) -> Syntax | None:
    """What a condition asks of the parent, as a condition of that, if it asks for nothing else."""
    match syntax:
        case LocationPath(absolute=False, steps=(StepSyntax(axis="parent") as up, *rest)):
            is_bare = up.test == "node()" and not up.predicates and rest
            steps = rest if is_bare else [replace(up, axis="self"), *rest]
            return replace(syntax, steps=tuple(steps))
        case Operation(operands=parts) | Call(arguments=parts) if parts:
            if isinstance(syntax, Call) and syntax.name in OF_CONTEXT:
                return None
            found = [part if is_literal(part) else _about_parent(part) for part in parts]
            inner = tuple(part for part in found if part is not None)
            if all(map(is_literal, parts)) or len(inner) < len(parts):
                return None
            if isinstance(syntax, Call):
                return replace(syntax, arguments=inner)
            return replace(syntax, operands=inner)
    return None


def abbreviated(path: LocationPath | tree.FilterExpression) -> Syntax:
    """``//b[ancestor::a]`` is ``//a//b``; any node that is an ``a`` is ``//a``."""
    if isinstance(path, tree.FilterExpression) or not path.absolute or not path.steps:
        return path
    start, *rest = path.steps
    if is_descend(start) and rest and rest[0].axis == "child":
        below, *rest = rest
        axes = ("ancestor", "ancestor-or-self")
        found, predicates = divided(below.predicates, partial(_as_step, axes=axes))
        below = replace(below, predicates=predicates)
        if len(found) == 1:
            (step,) = found
            or_self = replace(below, axis="descendant-or-self")
            below_it = (DESCEND, below) if step.axis == "ancestor" else (or_self,)
            return replace(path, steps=(start, replace(step, axis="child"), *below_it, *rest))
    elif start.axis == "descendant-or-self" and start.test == "node()":
        found, predicates = divided(start.predicates, partial(_as_step, axes=("self",)))
        if len(found) == 1:
            (step,) = found
            step = replace(step, axis="child", predicates=(*step.predicates, *predicates))
            return replace(path, steps=(DESCEND, step, *rest))
    return path


def _as_step(syntax: Syntax, axes: tuple[str, ...]) -> StepSyntax | None:
    """A condition as one step to elements on one of some axes, which asks all else in predicates.

    ``self::a/b = 1`` is ``self::a[b = 1]``.
    """
    match syntax:
        case LocationPath(absolute=False, steps=(step, *rest)):
            condition: Syntax | None = relative(*rest) if rest else None
        case Operation(
            operators=(operator,),
            operands=(LocationPath(absolute=False, steps=(step, *rest)) as path, literal),
        ) if operator.text in COMPARISONS and is_literal(literal):
            inner = replace(path, steps=tuple(rest) or (SELF,))
            condition = operation(operator.text, inner, literal)
        case _:
            return None
    if step.axis not in axes or not step.has_name or any(map(is_positional, step.predicates)):
        return None
    return step if condition is None else with_predicate(step, condition)


def of_namespaces(condition: Syntax) -> Syntax:
    """``namespace-uri() = 'U'``, of an element, is ``self::Q{U}*``."""
    match condition:
        case Operation(
            operators=(operator,),
            operands=(Call(name="namespace-uri", arguments=arguments), String(value=uri)),
        ) if operator.text in ("=", "!=") and arguments in ((), (HERE,)) and _is_uri(uri):
            found = relative(replace(SELF, test=f"Q{{{uri}}}*"))
            return found if operator.text == "=" else call("not", found)
        case Operation(operators=(operator, *_)) if operator.text in ("and", "or"):
            return replace(condition, operands=tuple(map(of_namespaces, condition.operands)))
        case Call(name="not", arguments=(argument,)):
            return call("not", of_namespaces(argument))
    return condition


def _is_uri(text: str) -> bool:
    """Whether a text can stand between the braces of ``Q{…}``, which normalize white space."""
    return not set(text) & set("{}") and text == " ".join(text.split())


# -- conditions of predicates that are about the document alone ------------------------------------


def closed_beside(syntax: Syntax) -> Syntax:
    """An expression that is as true: ``//a[/b]`` is true where ``//a and /b`` is."""
    match syntax:
        case Operation(operators=(operator, *_), operands=operands):
            if operator.text in ("and", "or"):
                return replace(syntax, operands=tuple(map(closed_beside, operands)))
        case Call(name="not" | "boolean", arguments=(argument,)):
            return replace(syntax, arguments=(closed_beside(argument),))
    rest, conditions = _without_closed(syntax)
    return operation("and", rest, *map(closed_beside, conditions))


def _without_closed(syntax: Syntax) -> tuple[Syntax, list[Syntax]]:
    """What is left without the conditions of predicates that are about the document alone."""
    match syntax:
        case LocationPath(steps=steps):
            found: list[Syntax] = []
            conditions: list[Syntax]
            kept_steps = []
            for step in steps:
                conditions, predicates = divided(step.predicates, _if_closed)
                found += conditions
                inner = [_without_closed(each) for each in predicates]
                found += [condition for _, more in inner for condition in more]
                kept_steps.append(replace(step, predicates=tuple(rest for rest, _ in inner)))
            return replace(syntax, steps=tuple(kept_steps)), found
        case Operation(operators=(operator,), operands=(LocationPath() as path, literal)):
            if operator.text in COMPARISONS and is_literal(literal):
                rest, found = _without_closed(path)
                return replace(syntax, operands=(rest, literal)), found
    return syntax, []


def _if_closed(syntax: Syntax) -> Syntax | None:
    return syntax if _is_closed(syntax) else None


def _is_closed(syntax: Syntax) -> bool:
    match syntax:
        case Number() | String():
            return True
        case LocationPath(absolute=absolute):
            return absolute
        case tree.FilterExpression(primary=inner) | tree.Negation(operand=inner):
            return _is_closed(inner)
        case Operation(operands=parts):
            return all(map(_is_closed, parts))
        case Call(name=name, arguments=parts):
            is_of_context = name in OF_CONTEXT or (not parts and name not in ("true", "false"))
            return not is_of_context and all(map(_is_closed, parts))
    return False
