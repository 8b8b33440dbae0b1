"""The DTDs of the corpora, and those of their documents: what lxml (libxml2) reads in them."""

from __future__ import annotations

import collections
import time
from pathlib import Path

import pytest
from lxml import etree

from tamis.core.errors import SchemaError
from tamis.schema.reader import read_doctype, read_dtd
from tests.schema.against_lxml import facts, facts_of_lxml, models, models_of_lxml
from tests.support.corpora import ROOT

DTDS = sorted(ROOT.glob("**/*.dtd"))
MODULES = sorted(path for ending in ("ent", "mod") for path in ROOT.glob(f"**/*.{ending}"))
CLDR = sorted(ROOT.glob("cldr/**/*.xml"))  # hundreds, which all name the same large DTD
DOCUMENTS = sorted({*ROOT.glob("**/*.xml")}.difference(CLDR)) + CLDR[::10]

# What libxml2 refuses and is read here, all of it: why, and how many elements it declares.
READ_BY_TAMIS_ALONE = {
    "archivearticle.dtd": ("names modules by addresses; here they are found beside it", 383),
    "nlmmedline_011101.dtd": ("names modules by addresses; here they are found beside it", 108),
    "pubmed_020114.dtd": ("names modules by addresses; here they are found beside it", 120),
    "nlm-articleset-2.0.dtd": ("expands 90 times, beyond libxml2's limit on amplification", 468),
}
CATALOG = [ROOT / "entrez-dtds", ROOT / "cldr"]
LARGEST = ("NCBI_Mime.dtd", 2071)
BOMBS = [f"robustness/libxml2-recurse/lol_ip_{kind}.dtd" for kind in ("content", "value")]

BOMB_DOCUMENTS = ["lol_ep.xml", "lol_ip_content.xml", "lol_ip_value.xml"]

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not DTDS, reason=f"the corpora are not there: {ROOT}"),
]


def of_lxml(path: Path) -> etree.DTD | None:
    try:
        return etree.DTD(str(path))
    except etree.DTDParseError:
        return None


def compared(path: Path) -> str:
    """How we and lxml read a file; it fails where both do and find different things."""
    theirs = of_lxml(path)
    try:
        ours = read_dtd(path)
    except SchemaError as error:
        return "refused by both" if theirs is None else f"refused: {error}"
    if theirs is None:
        return "read by tamis alone"
    if facts(ours) != facts_of_lxml(theirs) or models(ours) != models_of_lxml(theirs):
        return "different, something missing" if ours.missing else "different"
    return "equal"


def test_dtds() -> None:
    found = {str(path.relative_to(ROOT)): compared(path) for path in DTDS}
    alone = {Path(name).name for name, how in found.items() if how == "read by tamis alone"}
    both = {name for name, how in found.items() if how == "refused by both"}
    allowed = ("equal", "refused by both", "read by tamis alone")
    assert {name: how for name, how in found.items() if how not in allowed} == {}
    assert alone == set(READ_BY_TAMIS_ALONE)
    assert both.issuperset(BOMBS)
    assert list(found.values()).count("equal") > 100
    print(collections.Counter(found.values()))


@pytest.mark.parametrize("name", READ_BY_TAMIS_ALONE)
def test_what_tamis_alone_reads_is_whole(name: str) -> None:
    (path,) = ROOT.glob(f"**/{name}")
    dtd = read_dtd(path)
    assert (len(dtd.elements), dtd.missing) == (READ_BY_TAMIS_ALONE[name][1], ())
    undeclared = {
        child
        for element in dtd.elements.values()
        for child in element.children
        if child not in dtd.elements
    }
    assert len(undeclared) <= 2, undeclared


def test_modules() -> None:
    """They are parts of DTDs: equal, unless entities that the whole declares are missing."""
    found = {str(path.relative_to(ROOT)): compared(path) for path in MODULES}
    count = collections.Counter(how.split(":")[0] for how in found.values())
    print(count)
    for how in found.values():
        if how.startswith("refused:"):
            assert "it may be for want of" in how
        else:
            assert how in ("equal", "refused by both", "different, something missing")
    assert count["equal"] > 50
    assert count["refused"] + count["different, something missing"] <= 3


def test_documents() -> None:
    """The internal subset of each is in what we read, and the root is its own, or both refuse."""
    found = {path.name: subsets_compared(path) for path in DOCUMENTS}
    count = collections.Counter(found.values())
    print(count)
    assert set(count) <= {"equal", "no DOCTYPE", "refused by lxml", "schema-limit"}, found
    assert {name for name, how in found.items() if how == "schema-limit"} == set(BOMB_DOCUMENTS)
    assert count["equal"] > 40


def subsets_compared(path: Path) -> str:
    try:
        ours = read_doctype(path, CATALOG)
    except SchemaError as error:
        refused = "no DOCTYPE" if "no document type" in str(error) else error.code
    else:
        refused = ""
    try:
        tree = etree.parse(str(path), etree.XMLParser(load_dtd=False, resolve_entities=False))
    except (etree.XMLSyntaxError, OSError):  # OSError: bytes that are not in the encoding
        return "refused by lxml"  # for its content, maybe
    internal = tree.docinfo.internalDTD
    if internal is None or refused == "no DOCTYPE":
        return "no DOCTYPE" if internal is None and refused else "different"
    if refused:
        return refused
    found, expected = facts(ours), facts_of_lxml(internal)
    same = all(found.get(name) == said for name, said in expected.items())
    return "equal" if same and ours.root == internal.name else "different"


def test_the_largest() -> None:
    name, count = LARGEST
    (path,) = ROOT.glob(f"**/{name}")
    start = time.process_time()
    dtd = read_dtd(path)
    print(f"{name}: {time.process_time() - start:.2f} s of the processor")
    assert (len(dtd.elements), dtd.missing) == (count, ())


@pytest.mark.parametrize(
    ("document", "count"),
    [
        ("entrez/pubmed1.xml", 331),
        ("entrez/taxonomy.xml", 61),
        ("cldr/main/de.xml", 300),
        ("blast/xml_2226_blastp_001.xml", 67),
    ],
)
def test_catalogues(document: str, count: int) -> None:
    """Real identifiers, addresses on the network, are found by the ends of their paths."""
    dtd = read_doctype(ROOT / document, CATALOG)
    assert dtd.missing == ()
    assert len(dtd.elements) == count
    assert dtd.root in dtd.elements
