"""``TamisBackend``: Sigma rules → expressions about events, as Tamis has them (docs/events.md)."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionItem,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.conversion.base import TextQueryBackend
from sigma.conversion.state import ConversionState
from sigma.exceptions import SigmaFeatureNotSupportedByBackendError
from sigma.rule import SigmaRule
from sigma.types import (
    CompareOperators,
    SigmaCIDRExpression,
    SigmaFieldReference,
    SigmaRegularExpression,
    SigmaString,
    SpecialChars,
)

_BARE = re.compile(r"[^\W\d](?:[\w:-]*\w)?")
_WORDS = frozenset("prefix suffix contains and or not in exists between true false null".split())
_ESCAPED = re.compile(r"[\\*?]")
_WILDCARDS = {SpecialChars.WILDCARD_MULTI: "*", SpecialChars.WILDCARD_SINGLE: "?"}


class TamisBackend(TextQueryBackend):
    """Converts Sigma rules to expressions, or to files of subscriptions.

    Strings are compared without case, as Sigma has it; with ``cased`` as they are. A number is also
    found where it is written as a string. A field with dots is looked for in objects, and as a
    name. Keywords are looked for in all values of an event. What cannot be said raises
    ``SigmaFeatureNotSupportedByBackendError``.
    """

    name: ClassVar[str] = "Tamis"
    formats: ClassVar[dict[str, str]] = {
        "default": "Expressions",
        "tsv": "Lines of an id, a tab and an expression",
        "ndjson": "Lines of JSON with an id and an expression",
    }
    requires_pipeline: ClassVar[bool] = False

    precedence: ClassVar[tuple[type[ConditionItem], type[ConditionItem], type[ConditionItem]]] = (
        ConditionNOT,
        ConditionAND,
        ConditionOR,
    )
    group_expression: ClassVar[str] = "({expr})"
    or_token: ClassVar[str] = "or"
    and_token: ClassVar[str] = "and"
    not_token: ClassVar[str] = "not"
    eq_token: ClassVar[str] = " = "
    bool_values: ClassVar[dict[bool, str | None]] = {True: "true", False: "false"}
    compare_op_expression: ClassVar[str] = "{field} {operator} {value}"
    compare_operators: ClassVar[dict[CompareOperators, str]] = {
        CompareOperators.LT: "<",
        CompareOperators.LTE: "<=",
        CompareOperators.GT: ">",
        CompareOperators.GTE: ">=",
    }
    field_null_expression: ClassVar[str] = "{field} absent"
    field_exists_expression: ClassVar[str] = "{field} exists"
    field_not_exists_expression: ClassVar[str] = "{field} absent"

    def escape_and_quote_field(self, field_name: str) -> str:
        """A field as a path; parts that would be read as something else are in backquotes."""
        parts = field_name.split(".")
        if not all(parts):
            parts = [field_name]
        written = [
            part
            if _BARE.fullmatch(part) and (index or part not in _WORDS)
            else "`" + part.replace("`", "``") + "`"
            for index, part in enumerate(parts)
        ]
        return ".".join(written)

    def convert_condition_field_eq_val_str(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> str:
        """A string, in which ``*`` and ``?`` may be wildcards; case does not matter."""
        return self._compared(cond, "i")

    def convert_condition_field_eq_val_str_case_sensitive(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> str:
        """A string, as it is."""
        return self._compared(cond, "")

    def _compared(self, cond: ConditionFieldEqualsValueExpression, case: str) -> str:
        assert isinstance(cond.value, SigmaString)
        field = self.escape_and_quote_field(cond.field)
        pattern, is_plain = _pattern(cond.value)
        if is_plain:
            return f"{field} = {case}{_json(''.join(map(str, cond.value.s)))}"
        if set(pattern) == {"*"}:
            return f"{field} exists"
        return f"{field} like {case}{_json(pattern)}"

    def convert_condition_field_eq_val_num(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> str:
        """A number, or the same as a string."""
        field, number = self.escape_and_quote_field(cond.field), str(cond.value)
        return f"({field} = {number} or {field} = {_json(number)})"

    def convert_condition_field_eq_val_cidr(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> str:
        """A network."""
        assert isinstance(cond.value, SigmaCIDRExpression)
        field = self.escape_and_quote_field(cond.field)
        return f"{field} cidr {_json(str(cond.value.network))}"

    def convert_condition_field_eq_val_re(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> str:
        """A regular expression, which a part of the string matches."""
        return f"{self.escape_and_quote_field(cond.field)} matches {_regex(cond.value)}"

    def convert_condition_field_eq_field(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> str:
        """A comparison of two fields, without case."""
        assert isinstance(cond.value, SigmaFieldReference)
        operator = "prefix" if cond.value.starts_with else "="
        if cond.value.ends_with:
            operator = "contains" if cond.value.starts_with else "suffix"
        other = self.escape_and_quote_field(cond.value.field)
        return f"{self.escape_and_quote_field(cond.field)} {operator} i field({other})"

    def convert_condition_val_str(
        self, cond: ConditionValueExpression, state: ConversionState
    ) -> str:
        """A keyword: a part of some value of the event, wherever it is."""
        assert isinstance(cond.value, SigmaString)
        pattern, _ = _pattern(cond.value)
        return f"* like i{_json(f'*{pattern}*')}"

    def convert_condition_val_num(
        self, cond: ConditionValueExpression, state: ConversionState
    ) -> str:
        """A number as a keyword: some value, or a part of it."""
        return f"(* = {cond.value} or * contains {_json(str(cond.value))})"

    def convert_condition_val_re(
        self, cond: ConditionValueExpression, state: ConversionState
    ) -> str:
        """A regular expression, which a part of some value matches."""
        return f"* matches {_regex(cond.value)}"

    def convert_condition_field_eq_val_timestamp_part(
        self, cond: ConditionFieldEqualsValueExpression, state: ConversionState
    ) -> str:
        """Not supported."""
        raise SigmaFeatureNotSupportedByBackendError("Tamis has no parts of times")

    def convert_correlation_rule(self, *arguments: Any, **others: Any) -> list[Any]:
        """Not supported."""
        raise SigmaFeatureNotSupportedByBackendError("Tamis correlates no events")

    # -- output formats ----------------------------------------------------------------------------

    def finalize_query_tsv(
        self, rule: SigmaRule, query: str, index: int, state: ConversionState
    ) -> str:
        """A line of a file of subscriptions."""
        return f"{_id(rule, index)}\t{query}"

    def finalize_output_tsv(self, queries: list[str]) -> str:
        """A file of subscriptions."""
        return "".join(f"{query}\n" for query in queries)

    def finalize_query_ndjson(
        self, rule: SigmaRule, query: str, index: int, state: ConversionState
    ) -> str:
        """A line of a file of subscriptions, as JSON."""
        line = {"id": _id(rule, index), "expression": query}
        return json.dumps(line, ensure_ascii=False)

    def finalize_output_ndjson(self, queries: list[str]) -> str:
        """A file of subscriptions."""
        return self.finalize_output_tsv(queries)


def _pattern(value: SigmaString) -> tuple[str, bool]:
    """A string as a pattern of ``like``, and whether it has no wildcards."""
    pattern, is_plain = "", True
    for part in value.s:
        if isinstance(part, str):
            pattern += _ESCAPED.sub(r"\\\g<0>", part)
        elif isinstance(part, SpecialChars):
            pattern, is_plain = pattern + _WILDCARDS[part], False
        else:
            message = f"no pipeline has filled in the placeholder %{part.name}%"
            raise SigmaFeatureNotSupportedByBackendError(message)
    return pattern, is_plain


def _regex(value: object) -> str:
    """A regular expression as a string, with its flags."""
    assert isinstance(value, SigmaRegularExpression)
    flags = "".join(sorted(value.sigma_to_re_flag[flag] for flag in value.flags))
    return _json(f"(?{flags}){value.regexp}" if flags else str(value.regexp))


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _id(rule: SigmaRule, index: int) -> str:
    """The id of a rule, or its title; further conditions of the rule are numbered."""
    own: Any = rule.id or rule.title
    return f"{own}-{index + 1}" if index else str(own)
