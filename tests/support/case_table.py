"""The shared table of named cases: one document, one subscription, one answer each.

The rows are in the TOML files beside this module, a file a section. A ``[[group]]`` shares whatever
its cases have in common; a case may set any of these keys itself:

``name``          of the case, unique in the table.
``document``      XML as text; ``encoding`` is the Python codec that writes it as bytes (UTF-8).
``bytes``         the document with Python's escapes, instead of ``document``.
``text``          true: the document is handed over as a ``str``.
``subscription``  the expression; ``namespaces`` its prefixes.
``expected``      true, false, or the code of the error that it gives.
``note``          why, where the name does not say it; of a group, the note in docs/xpath.md.
``construct``     of a group: its row in the table in docs/xpath.md of what is supported.
``refused``       of a group: its row in the table in docs/xpath.md of what is not.
``instead``       what to write instead of a refused expression.
``oracle_wrong``  the faults of faults.toml that make an oracle give another answer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

SECTIONS = (
    "axes",
    "node_tests",
    "predicates",
    "comparisons",
    "functions",
    "unions",
    "values",
    "encodings",
    "refused",
)
"""The files, in the order of the table in docs/xpath.md."""


@dataclass(frozen=True)
class Case:
    """One row of the table; see the module for what its fields mean."""

    section: str
    name: str
    document: bytes | str
    subscription: str
    expected: bool | str
    namespaces: Mapping[str, str] = field(default_factory=dict)
    instead: str | None = None
    oracle_wrong: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.section}: {self.name}"


@dataclass(frozen=True)
class Group:
    """Cases about one thing; with ``construct`` or ``refused`` it is a row in docs/xpath.md."""

    section: str
    cases: tuple[Case, ...]
    construct: str | None
    refused: str | None
    note: str | None


_GROUP_KEYS = frozenset(("construct", "refused", "cases"))
_CASE_KEYS = frozenset(
    "name document encoding bytes text subscription namespaces expected "
    "note instead oracle_wrong".split()
)


def groups() -> Iterator[Group]:
    """The whole table."""
    for section in SECTIONS:
        path = Path(__file__).parents[1] / "cases" / f"{section}.toml"
        for group in tomllib.loads(path.read_text(encoding="utf-8"))["group"]:
            shared = {key: value for key, value in group.items() if key not in _GROUP_KEYS}
            yield Group(
                section=section,
                cases=tuple(_case(section, shared | case) for case in group["cases"]),
                construct=group.get("construct"),
                refused=group.get("refused"),
                note=group.get("note"),
            )


def cases() -> list[Case]:
    """All cases of the table."""
    return [case for group in groups() for case in group.cases]


def _case(section: str, row: dict) -> Case:
    unknown = row.keys() - _CASE_KEYS
    assert not unknown, f"{row['name']}: unknown keys {unknown}"
    return Case(
        section=section,
        name=row["name"],
        document=_document(row),
        subscription=row["subscription"],
        expected=row["expected"],
        namespaces=row.get("namespaces", {}),
        instead=row.get("instead"),
        oracle_wrong=tuple(row.get("oracle_wrong", ())),
    )


def _document(row: dict) -> bytes | str:
    text = row.get("text", False)
    if "bytes" in row:
        unescaped = row["bytes"].encode("latin-1").decode("unicode_escape")
        return unescaped if text else unescaped.encode("latin-1")
    document = row["document"]
    return document if text else document.encode(row.get("encoding", "utf-8"))
