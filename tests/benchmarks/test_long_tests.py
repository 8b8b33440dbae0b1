"""The record of the tests that take minutes."""

from benchmarks.long_tests import RECORD, outdated


def test_the_record_is_of_these_sources() -> None:
    """Where it is not: ``python -m benchmarks.long_tests --record FILE``."""
    assert not outdated(), f"run python -m benchmarks.long_tests --record {RECORD}"
