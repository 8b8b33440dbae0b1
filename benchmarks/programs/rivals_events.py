"""What one would match events with from PyPI, without Tamis: a loop over compiled expressions.

    python -m benchmarks.programs.rivals_events SUBSCRIPTIONS EVENTS --rival NAME

The first is a file of lines, an id, a tab and constraints (``name operator constant``, and ``and``
between them); the second has an event in each line, in JSON. The rivals:

* ``lambdas``: Python's own, each expression an ``eval``ed function of the event;
* ``rule-engine``: rules, with the type checks of its own;
* ``cel``: the Common Expression Language in Rust (``common-expression-language``);
* ``cel-python``: the same language in Python, with the faster of its two runners.

Expressions are translated so that answers are ours: what is missing, null or of another type
satisfies nothing. So each asks for presence first, which is also what is cheapest, for most
attributes are missing; and then for the type, unless the library refuses to compare other ones.
Numbers are doubles in both of CEL (as its specification has those of JSON) and exact in the others:
answers are the same where integers are within 2**53.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.programs.protocol import Digest, Phases, answer, load, read_subscriptions
from tamis.language.constraints import Constraint

Event = dict[str, Any]

_CONSTRAINT = re.compile(
    r"""\s*(?P<name>[^\W\d]\w*)\s*
    (?P<operator>!=|<=|>=|=|<|>|(?:prefix|suffix|contains)\b)\s*
    (?:"(?P<text>[^"\\]*)"|(?P<number>[-+]?\d+(?P<fraction>\.\d+)?(?P<power>[eE][-+]?\d+)?))
    \s*(?P<rest>and\b|$)""",
    re.VERBOSE,
)
_NUMBER = (int, float)


class Rival(NamedTuple):
    """One way to match.

    Attributes:
        compile: what is true of the events that a filter matches.
        prepare: an event as ``compile`` has to have it.
        version: what answered.
    """

    compile: Callable[[list[Constraint]], Callable[[Any], bool]]
    prepare: Callable[[Event], Any]
    version: str


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("subscriptions")
    arguments.add_argument("events")
    arguments.add_argument("--rival", choices=RIVALS, required=True)
    given = arguments.parse_args()
    phases = Phases()
    rival = RIVALS[given.rival](phases)
    subscriptions, events = read(given.subscriptions, given.events)
    with phases("compile"):
        compiled = [(id, rival.compile(filter)) for id, filter in subscriptions]
    counts = {"events": 0, "matches": 0}
    digest = Digest()
    for event in events:
        with phases("match"):
            prepared = rival.prepare(event)
            found = [id for id, is_true in compiled if is_true(prepared)]
        digest.add(" ".join([str(counts["events"]), *found]))
        counts["events"] += 1
        counts["matches"] += len(found)
    answer(phases, counts, version=rival.version, engine=given.rival, digest=str(digest))


def read(
    subscriptions: str, events: str
) -> tuple[list[tuple[str, list[Constraint]]], Iterable[Event]]:
    """The filters of a file, with their ids; and the events of another, without what is null."""
    lines = Path(events).read_text(encoding="utf-8").split("\n")
    pairs = read_subscriptions(subscriptions)
    return [(id, constraints(expression)) for id, expression in pairs], [
        {name: value for name, value in json.loads(line).items() if value is not None}
        for line in lines
        if line
    ]


def constraints(expression: str) -> list[Constraint]:
    """What an expression consists of: no more than this is read here.

    >>> constraints('area prefix "a" and temp >= -1.5')
    [Constraint(name='area', operator='prefix', constant='a'), \
Constraint(name='temp', operator='>=', constant=-1.5)]
    """
    found = []
    place = 0
    while True:
        match = _CONSTRAINT.match(expression, place)
        if match is None:
            raise SystemExit(f"this is no constraint, or none that is read here: {expression!r}")
        constant: str | int | float = match["text"]
        if match["number"]:
            is_integer = not (match["fraction"] or match["power"])
            constant = int(match["number"]) if is_integer else float(match["number"])
        found.append(Constraint(match["name"], match["operator"], constant))
        place = match.end()
        if not match["rest"]:
            return found


# ---------------------------------------------------------------------------------------- rivals


def lambdas(phases: Phases) -> Rival:
    """Python's own functions."""
    del phases
    namespace = {"NUMBERS": frozenset(_NUMBER)}

    def compile_filter(filter: list[Constraint]) -> Callable[[Any], bool]:
        text = " and ".join(_in_python(*constraint) for constraint in filter)
        compiled: Callable[[Any], bool] = eval(f"lambda event: {text}", namespace)
        return compiled

    return Rival(compile_filter, lambda event: event, "eval")


def _in_python(name: str, operator: str, constant: Any) -> str:
    value, given = f"event.get({name!r})", repr(constant)
    forms = {
        "=": f"value == {given}",
        "prefix": f"value.startswith({given})",
        "suffix": f"value.endswith({given})",
        "contains": f"{given} in value",
    }
    compared = forms.get(operator, f"value {operator} {given}")
    is_type = "in NUMBERS" if isinstance(constant, _NUMBER) else "is str"
    return f"type(value := {value}) {is_type} and {compared}"


def rule_engine(phases: Phases) -> Rival:
    """Rules, whose comparisons of different types raise errors."""
    module = load("rule_engine", phases)
    # An event's own method finds what a name stands for, and that it stands for nothing.
    context = module.Context(resolver=dict.get)

    def compile_filter(filter: list[Constraint]) -> Callable[[Any], bool]:
        text = " and ".join(_in_rule(*constraint) for constraint in filter)
        matches = module.Rule(text, context=context).matches

        def is_true(event: Event) -> bool:
            try:
                return bool(matches(event))
            except (module.EvaluationError, TypeError):
                return False

        return is_true

    return Rival(compile_filter, lambda event: event, module.__version__)


def _in_rule(name: str, operator: str, constant: Any) -> str:
    given = _literal(constant)
    forms = {
        "!=": f"({name} < {given} or {name} > {given})",  # of other types, an error too
        "prefix": f"{name}.starts_with({given})",
        "suffix": f"{name}.ends_with({given})",
        "contains": f"{given} in {name}",
    }
    if operator == "=":
        return f"{name} == {given}"
    return f"{name} != null and {forms.get(operator, f'{name} {operator} {given}')}"


def cel(phases: Phases) -> Rival:
    """Rust's."""
    module = load("cel", phases)

    def compile_filter(filter: list[Constraint]) -> Callable[[Any], bool]:
        execute = module.compile(" && ".join(_in_cel(*constraint) for constraint in filter)).execute
        return lambda context: bool(execute(context))

    def prepare(event: Event) -> Any:
        return module.Context(variables={"event": _with_doubles(event)})

    return Rival(compile_filter, prepare, version("common-expression-language"))


def cel_python(phases: Phases) -> Rival:
    """Python's; the runner that makes functions of expressions is four times as fast."""
    module = load("celpy", phases)
    environment = module.Environment(runner_class=module.CompiledRunner)

    def compile_filter(filter: list[Constraint]) -> Callable[[Any], bool]:
        text = " && ".join(_in_cel(*constraint) for constraint in filter)
        evaluate = environment.program(environment.compile(text)).evaluate

        def is_true(activation: Any) -> bool:
            try:
                return bool(evaluate(activation))
            except module.CELEvalError:  # strings' methods of other types, which it says on stderr
                return False

        return is_true

    def prepare(event: Event) -> Any:
        return {"event": module.json_to_cel(_with_doubles(event))}

    return Rival(compile_filter, prepare, version("cel-python"))


def _in_cel(name: str, operator: str, constant: Any) -> str:
    is_number = isinstance(constant, _NUMBER)
    value, given = f"event.{name}", _literal(float(constant) if is_number else constant)
    forms = {
        "=": f"{value} == {given}",
        "prefix": f"{value}.startsWith({given})",
        "suffix": f"{value}.endsWith({given})",
        "contains": f"{value}.contains({given})",
    }
    compared = forms.get(operator, f"{value} {operator} {given}")
    is_type = f"type({value}) == {'double' if is_number else 'string'}"
    return f'"{name}" in event && {is_type} && {compared}'


def _with_doubles(event: Event) -> Event:
    return {name: float(value) if type(value) is int else value for name, value in event.items()}


def _literal(constant: str | int | float) -> str:
    return json.dumps(constant, ensure_ascii=False)


RIVALS: Mapping[str, Callable[[Phases], Rival]] = {
    "lambdas": lambdas,
    "rule-engine": rule_engine,
    "cel": cel,
    "cel-python": cel_python,
}


if __name__ == "__main__":
    main()
