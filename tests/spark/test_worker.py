"""What runs in the workers, run here: the size of batches, and what is kept between tasks."""

import pickle
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import MalformedDocument
from tamis.spark import worker
from tamis.spark.worker import AnswerTask, RowBuilder, ShippedMatcher, unpacked


def batch_of(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def answer(matcher: tamis.CompiledMatcher, *batches: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The answers to batches of a column that is kept and one of documents."""
    task = AnswerTask(ShippedMatcher.of(matcher), pa.string(), ("document",), "xml")
    return pickle.loads(pickle.dumps(task))(iter(batches))


@pytest.fixture
def small_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "OUTPUT_ROWS", 4)
    monkeypatch.setattr(worker, "OUTPUT_BYTES", 1000)


@pytest.mark.usefixtures("small_output")
def test_output_batches_end_at_their_number_of_rows() -> None:
    matcher = tamis.compile({f"s{number}": "//a" for number in range(6)})
    xml = ["<a/>", "<b/>", "<", "<a/>", None, "<a/>"]
    found = list(
        answer(
            matcher, batch_of(document=[*range(6)], xml=xml), batch_of(document=[6], xml=["<a/>"])
        )
    )
    assert [batch.num_rows for batch in found] == [4, 3, 4, 3, 4, 2, 4, 2]
    rows = [row for batch in found for row in batch.to_pylist()]
    assert [(row["document"], row["subscription"]) for row in rows if row["error"] is None] == [
        (document, f"s{number}") for document in (0, 3, 5, 6) for number in range(6)
    ]
    assert [row["document"] for row in rows if row["error"] is not None] == [2, 4]


@pytest.mark.usefixtures("small_output")
def test_output_batches_end_at_their_size() -> None:
    """Large kept values: few rows a batch, and one alone that is larger than a batch may be."""
    rows = RowBuilder(batch_of(document=["x" * 400, "y" * 5000, "z"]), pa.array(["s", "t", "u"]))
    numbers = np.arange(3, dtype=np.int32)
    found = [batch for row in range(3) for batch in rows.add(row, numbers)]
    found += [*rows.add_error(1, MalformedDocument("no")), *rows.flush()]
    starts = [[text[0] for text in batch["document"].to_pylist()] for batch in found]
    assert starts == [["x", "x"], ["x"], ["y"], ["y"], ["y"], ["z", "z", "z"], ["y"]]


def test_nothing_matched_is_no_batch() -> None:
    assert list(answer(tamis.compile({"s": "//z"}), batch_of(document=[1], xml=["<a/>"]))) == []
    assert list(answer(tamis.compile({}), batch_of(document=[1], xml=["<a/>"]))) == []
    assert list(answer(tamis.compile({"s": "//z"}))) == []


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_documents_of_any_column_type(type: pa.DataType) -> None:
    xml = pa.array(["<a>é</a>".encode(), None], pa.binary()).cast(type)
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), xml], ["document", "xml"])
    (found,) = answer(tamis.compile({"s": "//a[. = 'é']"}), batch)
    assert found["subscription"].to_pylist() == ["s", None]


def test_text_that_declares_another_encoding_is_an_error() -> None:
    xml = "<?xml version='1.0' encoding='latin-1'?><a/>"
    (found,) = answer(tamis.compile({"s": "//a"}), batch_of(document=[1], xml=[xml]))
    assert found["error"][0]["code"].as_py() == "document-encoding"
    (found,) = answer(tamis.compile({"s": "//a"}), batch_of(document=[1], xml=[xml.encode()]))
    assert found["subscription"].to_pylist() == ["s"]


def test_limits_and_the_slow_lane_travel_with_the_matcher() -> None:
    xml = batch_of(document=[1, 2], xml=["<a/>", "<a><b/></a>"])
    strict = tamis.compile({"s": "//a"}, limits=tamis.Limits(depth=1))
    (found,) = answer(strict, xml)
    assert found["error"][1]["code"].as_py() == "document-limit"
    slow = tamis.Subscriptions({"s": "//b/parent::a"}, unsupported="slow")
    (found,) = answer(tamis.compile(slow), xml)
    assert found["document"].to_pylist() == [2]


def test_a_worker_compiles_once() -> None:
    """The same subscriptions come with every task, pickled anew; others are told apart."""
    subscriptions = {"s": "//only[here]"}

    def shipped() -> ShippedMatcher:
        return pickle.loads(pickle.dumps(ShippedMatcher.of(tamis.compile(subscriptions))))

    first = unpacked(shipped())
    assert unpacked(shipped()) is first
    subscriptions["t"] = "//another"
    assert unpacked(shipped()) is not first
    assert unpacked(shipped()).ids == ("s", "t")
