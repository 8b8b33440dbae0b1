"""``tamis hardware``: what a user sees."""

import fcntl
import gzip
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.running import Outcome, run

pytestmark = pytest.mark.hardware

Write = Callable[[dict[str, str | bytes]], None]

SUBSCRIPTIONS = """large\t//order[total > 100]
urgent\t//order[@urgent]
item\t/order/item
again\t/child::order/child::item
second\t//item[2]
of\t//p:note/p:of
none\tnot(//item)
"""
DTD = "<!ELEMENT order (total, item*)> <!ELEMENT total (#PCDATA)> <!ELEMENT item EMPTY>"


GIVEN = ("--subscriptions", "orders.tsv", "--ns", "p=urn:p")


@pytest.fixture
def orders(write: Write) -> None:
    """Subscriptions, and documents of which some are not for the circuit."""
    order = b"<order urgent='yes'><total>250</total><item/><item/></order>"
    write(
        {
            "orders.tsv": SUBSCRIPTIONS,
            "order.dtd": DTD,
            "in/1.xml": order,
            "in/2.xml": "<order>\n<total>5</order>",
            "in/3.xml": "<order><total>5</total></order>",
            "in/4.xml.gz": gzip.compress(order),
            "in/5.xml": "<p:note xmlns:p='urn:p'><p:of/></p:note>",
            "in/6.xml": "<!DOCTYPE order [<!ENTITY e '<item/>'>]><order>&e;</order>",
            "in/7.xml": order.decode().encode("utf-16"),
            "in/8.xml": "",
            "in/9.xml": "<order>" * 20 + "<item/>" + "</order>" * 20,
            "in/10.xml": "<order urgent='a' urgent='b'><item/></order>",
        }
    )


def both(*arguments: str) -> tuple[Outcome, Outcome]:
    """What ``match`` and ``hardware simulate`` print."""
    return run("match", *GIVEN, *arguments), run("hardware", "simulate", *GIVEN, *arguments)


@pytest.mark.usefixtures("orders")
def test_prints_what_match_prints() -> None:
    software, circuit = both("in", "missing.xml")
    assert circuit.out == software.out
    assert circuit.status == software.status == 3
    assert "large is not in the circuit: it asks for the text of an element" in circuit.err
    assert "second is not in the circuit: it asks for a position" in circuit.err
    assert "documents that are not for the circuit: " in circuit.err
    assert "in error whose fault the circuit does not see: 1" in circuit.err
    for reason in ("malformed 3", "overflow 1", "unsupported"):
        assert reason in circuit.err


@pytest.mark.usefixtures("orders")
def test_keeps_a_folder_and_waveforms() -> None:
    folder = "what's kept"  # make knows no such folders
    kept = ("in/1.xml", "in/3.xml", "--dtd", "order.dtd", "--folder", folder)
    first = run("hardware", "simulate", *GIVEN, *kept, "--waveforms", "all.vcd")
    assert first.status == 0, first.err
    assert "$var" in Path("all.vcd").read_text(encoding="utf-8")
    files = {file: file.stat().st_mtime_ns for file in Path(folder).glob("[st]*")}
    assert len(files) == 4
    second = run("hardware", "simulate", *GIVEN, *kept, "--waveforms", "all.vcd")
    assert second.out == first.out
    assert {file: file.stat().st_mtime_ns for file in Path(folder).glob("[st]*")} == files
    assert json.loads(first.out.splitlines()[1])["matches"] == ["none"]


@pytest.mark.usefixtures("orders")
def test_generates_verilog_and_a_manifest() -> None:
    given = (*GIVEN, "--dtd", "order.dtd")
    outcome = run("hardware", "generate", *given, "--output", "circuit", "--cluster", "2")
    assert outcome.status == 0, outcome.err
    assert "module tamis(" in Path("circuit/tamis.v").read_text(encoding="utf-8")
    manifest = json.loads(Path("circuit/manifest.json").read_text(encoding="utf-8"))
    assert sorted(manifest["matches"]) == [["item", "again"], ["none"], ["of"], ["urgent"]]
    assert sum(manifest["clusters"]) == len(manifest["matches"])
    assert {each["id"] for each in manifest["software"]} == {"large", "second"}
    assert manifest["tags"] == ["item", "order", "p:note", "p:of", "total"]
    assert manifest["attributes"] == [{"names": ["urgent"], "value": None}]
    assert manifest["prefixes"] == {"p": "urn:p"}


@pytest.mark.usefixtures("orders")
def test_reports_an_estimate_and_a_routed_circuit() -> None:
    given = (*GIVEN, "--dtd", "order.dtd")
    estimated = json.loads(run("hardware", "report", *given, "--estimate").out)
    assert estimated["estimate"] is True
    assert "megahertz" not in estimated
    outcome = run("hardware", "report", *given, "--seeds", "2", "--folder", "kept", "--cluster=2")
    routed = json.loads(outcome.out)
    assert routed["estimate"] is False
    assert routed["queries"] == estimated["queries"] == 4
    clocks = routed["megahertz"]
    assert set(clocks) == {"1", "2"}
    assert 100 < min(clocks.values()) <= routed["megahertz_median"] <= max(clocks.values()) < 1_000
    assert 0 < routed["luts_share"] < 0.05
    drawing = ET.parse("kept/floor-plan-2.svg").getroot()
    names = {text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"cluster_0", "cluster_1", "front"} <= names


@pytest.mark.usefixtures("orders")
def test_refuses_what_cannot_be_done() -> None:
    output = ("--output", "out")
    refused = run("hardware", "generate", *GIVEN, *output, "--rest", "refuse")
    assert (refused.status, Path("out").exists()) == (2, False)
    assert "large is not in the circuit" in refused.err
    assert "2 subscriptions cannot be put in the circuit" in refused.err
    depth = run("hardware", "generate", *GIVEN, *output, "--depth", "12")
    assert depth.status == 2
    assert "expected a power of 2" in depth.err
    stream = run("hardware", "simulate", *GIVEN, "-", stdin=b"<order/>")
    assert stream.status == 2
    assert "give --dtd or --sample, or files" in stream.err
    folder = run("hardware", "generate", *GIVEN, "--output", "orders.tsv")
    assert folder.status == 1
    assert "cannot write orders.tsv" in folder.err
    Path("positions.tsv").write_text("p\t//a[2]\n", encoding="utf-8")
    Path("odd/manifest.json").mkdir(parents=True)
    odd = run("hardware", "generate", *GIVEN, "--output", "odd")
    assert odd.status == 1
    assert "cannot use odd/manifest.json: Is a directory" in odd.err
    for file in ("odd", "/dev/full", "nowhere/x.vcd"):
        waveforms = run("hardware", "simulate", *GIVEN, "in/1.xml", "--waveforms", file)
        assert (waveforms.status, f"cannot write {file}" in waveforms.err) == (1, True)
    nothing = run("hardware", "generate", "--subscriptions", "positions.tsv", *output)
    assert nothing.status == 2
    assert "there is no subscription for a circuit; p: it asks for a position" in nothing.err


@pytest.mark.usefixtures("orders")
def test_warns_of_samples_that_have_no_names() -> None:
    samples = ("--sample", "in/2.xml", "--sample", "in/1.xml")
    outcome = run("hardware", "generate", *GIVEN, *samples, "--output", "circuit")
    assert outcome.status == 0
    assert "<total> is open; its names are not in the alphabet" in outcome.err
    assert "in/1.xml" not in outcome.err
    missing = run("hardware", "generate", *GIVEN, "--sample", "missing.xml", "--output", "circuit")
    assert missing.status == 2
    assert "cannot read missing.xml: No such file or directory" in missing.err
    Path("other.dtd").write_text("<!ELEMENT q:order ANY>", encoding="utf-8")
    prefix = run("hardware", "generate", *GIVEN, "--dtd", "other.dtd", "--output", "circuit")
    assert "q:order is not in the alphabet: declare its prefix: --ns q=URI" in prefix.err


@pytest.mark.usefixtures("orders")
def test_ids_keep_their_type() -> None:
    Path("numbers.ndjson").write_text(
        '{"id": 1, "expression": "//item"}\n{"id": "1", "expression": "//total"}\n'
        '{"id": 2, "expression": "//item[2]"}\n',
        encoding="utf-8",
    )
    given = ("--subscriptions", "numbers.ndjson", "in/1.xml", "in/3.xml")
    software, circuit = run("match", *given), run("hardware", "simulate", *given)
    assert circuit.out == software.out
    assert json.loads(circuit.out.splitlines()[0])["matches"] == [1, "1", 2]


@pytest.mark.usefixtures("orders")
def test_two_commands_do_not_work_in_one_folder() -> None:
    Path("circuit").mkdir()
    with Path("circuit/lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcome = run("hardware", "simulate", *GIVEN, "in/1.xml", "--folder", "circuit")
    assert outcome.status == 1
    assert "cannot write circuit: another command works there" in outcome.err


@pytest.mark.usefixtures("orders")
def test_says_that_verilator_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "nowhere")
    outcome = run("hardware", "simulate", *GIVEN, "in/1.xml")
    assert outcome.status == 2
    assert "install it" in outcome.err
    assert "verilator" in outcome.err
