"""The rules of ``event_shapes.py`` in DuckDB, Polars and CEL, as those write them who know these.

In DuckDB and Polars rules are rows, in a table for all that ask the same of the same fields. Events
are read from NDJSON into the columns that rules ask for, and joined with each table: by hashes
where anything is equal, which prefixes and the ends of wildcards are too, for a table has those of
one length; by ranges; or else each with each. In CEL a rule is a program, run for each event, which
is the values of the fields that rules ask for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, NamedTuple

from benchmarks.programs.event_shapes import Batch, Compiled, Found, Json, at, nested
from benchmarks.programs.protocol import Phases, load


class Condition(NamedTuple):
    """What is asked of a field, and of which constants.

    ``text`` has a head, a tail and what is between, any of which may be empty.
    """

    path: str
    form: str
    constants: tuple[Any, ...]

    @property
    def lengths(self) -> tuple[int, int, bool]:
        """Of a text: the lengths of its head and tail, and whether something is between."""
        head, tail, between = self.constants if self.form == "text" else ("", "", "")
        return len(head), len(tail), bool(between)


def conditions(rule: Json) -> list[Condition]:
    """What a rule consists of.

    >>> conditions({"a": [{"wildcard": "x*yz"}]})
    [Condition(path='a', form='text', constants=('x', 'yz', ''))]
    """
    found = []
    for path, (asked,) in rule.items():
        ((kind, value),) = asked.items() if isinstance(asked, dict) else [("=", asked)]
        if kind == "numeric":
            found.append(Condition(path, kind, (value[1], value[3])))
        elif kind in ("prefix", "wildcard"):
            head, *between, tail = value.split("*") if kind == "wildcard" else (value, "")
            found.append(Condition(path, "text", (head, tail, "".join(between))))
        else:
            found.append(Condition(path, kind, (value,) if kind == "=" else tuple(value)))
    return found


class Table(NamedTuple):
    """Rules that ask the same of the same fields, of which ``conditions`` are those of one.

    Attributes:
        columns: the rules' numbers, then their constants, by name.
        names: of the columns of constants, by condition.
    """

    conditions: list[Condition]
    columns: dict[str, list[Any]]
    names: list[list[str]]


def tables(rules: list[Json]) -> tuple[list[Table], dict[str, bool]]:
    """Rules as tables; and the fields that they ask for: whether they are numbers."""
    rows: dict[object, list[tuple[Any, ...]]] = {}
    first: dict[object, list[Condition]] = {}
    for number, rule in enumerate(rules):
        parts = conditions(rule)
        key = tuple((part.path, part.form, part.lengths) for part in parts)
        first.setdefault(key, parts)
        rows.setdefault(key, []).append((number, *(c for part in parts for c in part.constants)))
    found = []
    for shared, parts in first.items():
        values = zip(*rows[shared], strict=True)
        columns = {f"c{n}": list(each) for n, each in enumerate(values)}
        names = iter([*columns][1:])
        found.append(Table(parts, columns, [[next(names) for _ in p.constants] for p in parts]))
    every = [part for parts in first.values() for part in parts]
    return found, {part.path: part.form == "numeric" for part in every}


def duckdb(rules: list[Json], phases: Phases) -> Compiled:
    """SQL."""
    module = load("duckdb", phases)
    with phases("compile"):
        connection = module.connect(config={"threads": 1})
        found, fields = tables(rules)
        queries = []
        for number, table in enumerate(found):
            unnested = ", ".join(f"unnest(${name}) {name}" for name in table.columns)
            connection.execute(f"create table r{number} as select {unnested}", table.columns)
            pairs = zip(table.conditions, table.names, strict=True)
            terms = " and ".join(_in_sql(asked, *names) for asked, names in pairs)
            queries.append(f"select n, c0 from e join r{number} on {terms}")
        tree = nested({path: "double" if fields[path] else "varchar" for path in fields})
        types = {name: _sql_type(inner) for name, inner in tree.items()}
        taken = ", ".join(f'{path} as "{path}"' for path in fields)

    def match(batch: Batch) -> Found:
        connection.execute(
            f"create or replace temp table e as select row_number() over () - 1 as n, {taken} "
            f"from read_json('{batch.file}', format = 'newline_delimited', records = true, "
            f"columns = {types})"  # without records, one column alone takes the slow way
        )
        pairs = connection.execute(" union all ".join(queries)).fetchnumpy()
        return pairs["n"], pairs["c0"]

    return match, f"duckdb {module.__version__}"


def _sql_type(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    return f"struct({', '.join(f'{name} {_sql_type(inner)}' for name, inner in tree.items())})"


def _in_sql(asked: Condition, first: str, second: str = "", third: str = "") -> str:
    field, (head, tail, is_between) = f'"{asked.path}"', asked.lengths
    if asked.form == "=":
        return f"{field} = {first}"
    if asked.form == "anything-but":
        return f"{field} is distinct from {first} and {field} is distinct from {second}"
    if asked.form == "numeric":
        return f"{field} >= {first} and {field} < {second}"
    middle = f"{field}[{head + 1}:length({field}) - {tail}]" if head + tail else field
    terms = {
        f"left({field}, {head}) = {first}": head,
        f"right({field}, {tail}) = {second}": tail,
        f"length({field}) >= {head + tail}": head and tail,
        f"contains({middle}, {third})": is_between,
    }
    return " and ".join(term for term, is_asked in terms.items() if is_asked)


def polars(rules: list[Json], phases: Phases) -> Compiled:
    """Lazy joins, collected together."""
    pl = load("polars", phases)

    def typed(tree: Any) -> Any:
        if isinstance(tree, dict):
            return pl.Struct({name: typed(inner) for name, inner in tree.items()})
        return pl.Float64 if tree else pl.String

    def field(path: str) -> Any:
        first, *names = path.split(".")
        found = pl.col(first)
        for name in names:
            found = found.struct.field(name)
        return found.alias(path)

    with phases("compile"):
        found, fields = tables(rules)
        types = {name: typed(tree) for name, tree in nested({**fields}).items()}
        joins = [_join(pl, table) for table in found]

    def match(batch: Batch) -> Found:
        events = pl.read_ndjson(batch.lines, schema=types).select(map(field, fields))
        events = events.with_row_index("n").lazy()
        pairs = pl.concat([join(events) for join in joins]).collect()
        return pairs["n"], pairs["c0"]

    return match, f"polars {pl.__version__}"


def _join(pl: Any, table: Table) -> Callable[[Any], Any]:
    """How events are joined with a table of rules."""
    equal: list[tuple[Any, Any]] = []
    others: list[Any] = []
    for asked, names in zip(table.conditions, table.names, strict=True):
        field, given = pl.col(asked.path), [pl.col(name) for name in names]
        if asked.form == "=":
            equal.append((field, given[0]))
        elif asked.form == "anything-but":
            others += [field.ne_missing(each) for each in given]
        elif asked.form == "numeric":
            others += [field >= given[0], field < given[1]]
        else:
            head, tail, is_between = asked.lengths
            length = field.str.len_chars().cast(pl.Int64)
            middle = field.str.slice(head, length - (head + tail)) if head + tail else field
            equal += [(field.str.head(head), given[0])] if head else []
            equal += [(field.str.tail(tail), given[1])] if tail else []
            others += [length >= head + tail] if head and tail else []
            others += [middle.str.contains(given[2], literal=True)] if is_between else []
    rules, has_range = pl.LazyFrame(table.columns), table.conditions[0].form == "numeric"

    def join(events: Any) -> Any:
        if has_range:
            return events.join_where(rules, *others).select("n", "c0")
        if equal:
            left, right = map(list, zip(*equal, strict=True))
            found = events.join(rules, left_on=left, right_on=right, coalesce=False)
        else:
            found = events.join(rules, how="cross")
        return (found.filter(*others) if others else found).select("n", "c0")

    return join


def cel(rules: list[Json], phases: Phases) -> Compiled:
    """The Common Expression Language in Rust."""
    module = load("cel", phases)
    with phases("compile"):
        fields = {path: f"f{number}" for number, path in enumerate(tables(rules)[1])}
        texts = [
            " && ".join(_in_cel(fields[t.path], t) for t in conditions(rule)) for rule in rules
        ]
        programs = [module.compile(text).execute for text in texts]

    def match(batch: Batch) -> Found:
        found = []
        for event in batch.events:
            values = {name: at(event, path) for path, name in fields.items()}
            context = module.Context(variables=values)
            found.append([number for number, run in enumerate(programs) if run(context)])
        return found

    return match, f"common-expression-language {version('common-expression-language')}"


def _in_cel(field: str, asked: Condition) -> str:
    is_number = asked.form == "numeric"
    given = [json.dumps(float(each) if is_number else each) for each in asked.constants]
    if asked.form == "=":
        return f"{field} == {given[0]}"
    if asked.form == "anything-but":
        return f"{field} != {given[0]} && {field} != {given[1]}"
    if is_number:
        return f"{field} >= {given[0]} && {field} < {given[1]}"
    head, tail, is_between = asked.lengths
    begin, end, between = map(re.escape, asked.constants)
    terms = {
        f"{field} != null": True,
        f"{field}.startsWith({given[0]})": head,
        f"{field}.endsWith({given[1]})": tail,
        f"size({field}) >= {head + tail}": head and tail,
        f"{field}.contains({given[2]})": is_between,
        f"{field}.matches({json.dumps(f'^{begin}.*{between}.*{end}$')})": is_between
        and head + tail,
    }
    return " && ".join(term for term, is_asked in terms.items() if is_asked)


RIVALS: Mapping[str, Callable[[list[Json], Phases], Compiled]] = {
    "duckdb": duckdb,
    "polars": polars,
    "cel": cel,
}
