"""lxml and elementpath agree with the table, but for the faults that faults.toml lists."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import tamis
from tests.cases.oracles import ORACLES, lxml
from tests.language.test_hints import DOCUMENTS
from tests.support.case_table import SECTIONS, Case, cases

FAULTS = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))
CASES = [case for case in cases() if isinstance(case.expected, bool)]
REFUSED = [case for case in cases() if case.instead is not None]


def disagrees(oracle: str, case: Case) -> bool:
    """Whether an oracle gives another answer than the table, or none."""
    try:
        answer = ORACLES[oracle](case)
    except Exception:  # whatever an oracle raises: it has no answer
        return True
    return answer != case.expected


@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("section", SECTIONS)
def test_oracle(section: str, oracle: str) -> None:
    """It disagrees where the table says so and nowhere else, so that no listed fault is stale."""
    found = [case for case in CASES if case.section == section]
    listed = [c.name for c in found if any(f.startswith(oracle + "/") for f in c.oracle_wrong)]
    assert [case.name for case in found if disagrees(oracle, case)] == listed


def test_faults_are_named_and_used() -> None:
    used = {fault for case in CASES for fault in case.oracle_wrong}
    assert used == {f"{oracle}/{fault}" for oracle in FAULTS for fault in FAULTS[oracle]}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_to_write_instead(case: Case) -> None:
    """It gives the answers that lxml gives to the refused expression."""
    assert case.instead is not None
    subscriptions = tamis.Subscriptions({"it": case.instead}, namespaces=case.namespaces)
    matcher = tamis.compile(subscriptions)
    for document in [case.document, *DOCUMENTS]:
        assert bool(matcher.match(document)) == lxml(replace(case, document=document)), document
