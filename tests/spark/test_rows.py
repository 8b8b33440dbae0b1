"""Rows made in the workers, here: the size of batches, and documents of any column type."""

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

import tamis
from tamis.spark import rows
from tamis.spark.answers import MatchSpec
from tamis.spark.frames import AnswerColumn
from tamis.spark.program import ProgramArtifact, SubscriptionSet, program


def batch_of(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def answer(given: SubscriptionSet, *batches: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The answers to batches of a column that is kept and one of documents."""
    made = program(given)
    task = AnswerColumn(made, form_of(made), ("document",), "xml")
    return pickle.loads(pickle.dumps(task))(iter(batches))


def form_of(made: ProgramArtifact) -> MatchSpec:
    return MatchSpec.of(made)


@pytest.fixture
def small_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "OUTPUT_ROWS", 4)
    monkeypatch.setattr(rows, "OUTPUT_BYTES", 1000)


@pytest.mark.usefixtures("small_output")
def test_output_batches_end_at_their_number_of_rows() -> None:
    subscriptions = {f"s{number}": "//a" for number in range(6)}
    xml = ["<a/>", "<b/>", "<", "<a/>", None, "<a/>"]
    given = [batch_of(document=[*range(6)], xml=xml), batch_of(document=[6], xml=["<a/>"])]
    found = list(answer(subscriptions, *given))
    assert max(batch.num_rows for batch in found) == 4
    assert len(found) < 11
    rows = [row for batch in found for row in batch.to_pylist()]
    assert [(row["document"], row["subscription"]) for row in rows if row["error"] is None] == [
        (document, f"s{number}") for document in (0, 3, 5, 6) for number in range(6)
    ]
    assert [row["document"] for row in rows if row["error"] is not None] == [2, 4]


@pytest.mark.usefixtures("small_output")
def test_output_batches_end_at_their_size() -> None:
    """Large kept values: few rows a batch, and one alone that is larger than a batch may be."""
    kept = batch_of(document=["x" * 400, "y" * 5000, "z"], xml=["<a/>"] * 3)
    found = list(answer({"s": "//a", "t": "//a", "u": "//a"}, kept))
    starts = ["".join(text[0] for text in batch["document"].to_pylist()) for batch in found]
    assert "".join(starts) == "xxxyyyzzz"
    assert all(len(start) == 1 for start in starts if "y" in start)
    assert max(batch.nbytes for batch in found if "y" not in batch["document"][0].as_py()) < 1500


def test_nothing_matched_is_no_batch() -> None:
    assert list(answer({"s": "//z"}, batch_of(document=[1], xml=["<a/>"]))) == []
    assert list(answer({}, batch_of(document=[1], xml=["<a/>"]))) == []
    assert list(answer({"s": "//z"})) == []


def test_what_is_true_of_nothing_is_not_said_of_a_document_in_error() -> None:
    (found,) = answer({"s": "not(//z)"}, batch_of(document=[1, 2, 3], xml=["<a/>", "<", None]))
    assert found["subscription"].to_pylist() == ["s", None, None]
    assert found["error"].is_valid().to_pylist() == [False, True, True]


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_documents_of_any_column_type(type: pa.DataType) -> None:
    xml = pa.array([b"<no/>", "<a>é</a>".encode(), None], pa.binary()).cast(type).slice(1)
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), xml], ["document", "xml"])
    (found,) = answer({"s": "//a[. = 'é']"}, batch)
    assert found["subscription"].to_pylist() == ["s", None]


def test_text_that_declares_another_encoding_is_an_error() -> None:
    xml = "<?xml version='1.0' encoding='latin-1'?><a/>"
    (found,) = answer({"s": "//a"}, batch_of(document=[1], xml=[xml]))
    assert found["error"][0]["code"].as_py() == "document-encoding"
    (found,) = answer({"s": "//a"}, batch_of(document=[1], xml=[xml.encode()]))
    assert found["subscription"].to_pylist() == ["s"]


@pytest.mark.parametrize("text", ["orders.xml", "<\0a\0/\0>\0", "", "\ufeff<a/>", "<a>\ud7ff</a>"])
def test_odd_text_is_answered_as_in_this_process(text: str) -> None:
    matcher = tamis.compile({"s": "//a"})
    (expected,) = matcher.match_many([text])
    (found,) = answer(matcher, batch_of(document=[1], xml=[text]))
    said = found["error"][0].as_py()
    if expected.error is None:
        assert (found["subscription"].to_pylist(), said) == (list(expected), None)
    else:
        assert (said["code"], said["message"]) == (expected.error.code, expected.error.message)


def test_limits_and_unsupported_slow_travel_with_the_matcher() -> None:
    xml = batch_of(document=[1, 2], xml=["<a/>", "<a><b/></a>"])
    strict = tamis.compile({"s": "//a"}, limits=tamis.Limits(depth=1))
    (found,) = answer(strict, xml)
    assert found["error"][1]["code"].as_py() == "document-limit"
    slow = tamis.Subscriptions({"s": "//b/parent::a"}, unsupported="slow")
    (found,) = answer(slow, xml)
    assert found["document"].to_pylist() == [2]
