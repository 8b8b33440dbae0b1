"""Rules for steps and predicates: parents and ancestors are asked for from above."""

from __future__ import annotations

from dataclasses import replace

from tamis.language.equivalents.parts import (
    COMPARISONS,
    DESCEND,
    HERE,
    OF_CONTEXT,
    SELF,
    call,
    divided,
    is_literal,
    is_positional,
    operation,
)
from tamis.language.grammar import (
    Call,
    FilterExpression,
    LocationPath,
    Number,
    Operation,
    StepSyntax,
    String,
    Syntax,
)
from tamis.language.printer import is_descend


def turn_back(done: list[StepSyntax]) -> bool:
    """Go back to the parents from the last step, if that can be said without doing so."""
    step = done[-1]
    if step.axis in ("child", "attribute"):
        done.pop()
        attach(done, LocationPath(0, False, (step,)))
        return True
    if step.axis == "descendant" and not any(map(is_positional, step.predicates)):
        child = LocationPath(0, False, (replace(step, axis="child"),))
        done[-1] = replace(DESCEND, predicates=(child,))
        return True
    return False


def attach(done: list[StepSyntax], predicate: Syntax) -> None:
    """Add a predicate to the last step."""
    if not done:
        done.append(SELF)
    done[-1] = replace(done[-1], predicates=(*done[-1].predicates, predicate))


def hoist_to_parent(done: list[StepSyntax]) -> None:
    """Give the step before the last one what the predicates of this one ask of the parent."""
    step = done[-1]
    if step.axis not in ("child", "attribute"):
        return
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


def abbreviated(path: LocationPath | FilterExpression) -> Syntax:
    """``//b[ancestor::a]`` is ``//a//b``; any node that is an ``a`` is ``//a``."""
    if isinstance(path, FilterExpression) or not path.absolute or not path.steps:
        return path
    start, *rest = path.steps
    if is_descend(start) and rest and rest[0].axis == "child":
        below, *rest = rest
        found, predicates = divided(below.predicates, _as_ancestor)
        below = replace(below, predicates=predicates)
        if len(found) == 1:
            step = _only_step(found[0])
            if step.axis == "ancestor":
                rest = [DESCEND, below, *rest]
            else:
                rest = [replace(below, axis="descendant-or-self"), *rest]
            return replace(path, steps=(start, replace(step, axis="child"), *rest))
    elif start.axis == "descendant-or-self" and start.test == "node()":
        found, predicates = divided(start.predicates, _as_self)
        if len(found) == 1:
            step = _only_step(found[0])
            step = replace(step, axis="child", predicates=(*step.predicates, *predicates))
            return replace(path, steps=(DESCEND, step, *rest))
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
            if any(map(is_positional, step.predicates)):
                return None
            leads = (LocationPath(0, False, tuple(rest)),) if rest else ()
            return replace(syntax, steps=(replace(step, predicates=(*step.predicates, *leads)),))
        case Operation(operators=(operator,), operands=(LocationPath() as path, literal)):
            if operator.text not in COMPARISONS or not is_literal(literal):
                return None
            found = _as_step(replace(path, steps=path.steps[:1]), axes)
            if found is None:
                return None
            steps = list(found.steps)
            inner = replace(path, steps=path.steps[1:] or (SELF,))
            attach(steps, operation(operator.text, inner, literal))
            return replace(found, steps=tuple(steps))
    return None


def of_namespaces(condition: Syntax) -> Syntax:
    """``namespace-uri() = 'U'``, of an element, is ``self::Q{U}*``."""
    match condition:
        case Operation(
            operators=(operator,),
            operands=(Call(name="namespace-uri", arguments=arguments), String(value=uri)),
        ) if operator.text in ("=", "!=") and arguments in ((), (HERE,)) and _is_uri(uri):
            found = LocationPath(0, False, (replace(SELF, test=f"Q{{{uri}}}*"),))
            return found if operator.text == "=" else call("not", found)
        case Operation(operators=(operator, *_)) if operator.text in ("and", "or"):
            return replace(condition, operands=tuple(map(of_namespaces, condition.operands)))
        case Call(name="not", arguments=(argument,)):
            return call("not", of_namespaces(argument))
    return condition


def _is_uri(text: str) -> bool:
    """Whether a text can stand between the braces of ``Q{…}``, which normalize white space."""
    return not set(text) & set("{}") and text == " ".join(text.split())
