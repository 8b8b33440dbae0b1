"""Each bound on a DTD: reached is allowed, beyond it is an error that names it.

Whatever the DTD, nothing takes long or much memory.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tamis.core.errors import SchemaError, SchemaLimitError, SchemaSyntaxError
from tamis.core.limits import Limits
from tamis.schema.dtd import Dtd
from tamis.schema.reader import parse_dtd, read_doctype, read_dtd

Write = Callable[..., None]


@pytest.fixture
def _cheap() -> Iterator[None]:
    """Bounds what a test may cost: 5 seconds of the processor and 300 MB more than were in use."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    yield
    assert time.process_time() - start < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def refused(text: str, limit: str, limits: Limits | None = None) -> SchemaError:
    with pytest.raises(SchemaLimitError) as caught:
        parse_dtd(text, limits or Limits())
    assert caught.value.code == "schema-limit"
    assert f"the limit {limit} = " in str(caught.value)
    return caught.value


# -- plain bounds ------------------------------------------------------------------------------


def test_characters() -> None:
    """The text, and 16 more."""
    text = "<!ELEMENT a (é)><!--日本-->"
    parse_dtd(text, Limits(schema_chars=len(text) + 16))
    error = refused(text, "schema_chars", Limits(schema_chars=len(text) + 15))
    assert error.line is None


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ("%p;", 10 + 16),
        ("%p;%p;", 2 * 26),
        ("<!ELEMENT a (b%p;)>", 26),
        ("<!ENTITY e '%p;%p;'>", 2 * 26),
        ("<!ENTITY e '%q;'>", (4 + 16) + 26),
        ("<!ATTLIST a b CDATA '&g;&g;'>", 2 * (7 + 16)),
        ("<!ATTLIST a b CDATA '&h;'>", (3 + 16) + (7 + 16)),
        ("<!ATTLIST a b CDATA '&lt;&#65;'>", 0),
        ("%gone;", 0),
        ("<!ENTITY e '%p;&g;'>", 26),
    ],
)
def test_what_is_counted(more: str, count: int) -> None:
    """What a reference stands for is counted wherever it is followed, and 16 for each."""
    text = f"""<!ENTITY % p '          '><!ENTITY % q ' &#37;p;'>
        <!ENTITY g 'ten&#116;een'><!ENTITY h '&g;'>{more}"""
    total = len(text) + 16 + count
    parse_dtd(text, Limits(schema_chars=total))
    refused(text, "schema_chars", Limits(schema_chars=total - 1))


def test_characters_of_files(write: Write) -> None:
    """Each use of a file counts, and each place where one is looked for."""
    main = "<!ENTITY % p SYSTEM 'http://x.invalid/a/p.mod'>%p;%p;"
    write({"main.dtd": main, "p.mod": "<!---->"})
    total = len(main) + 16 + 2 * 16 + 2 * (7 + 16)
    read_dtd(Path("main.dtd"), limits=Limits(schema_chars=total))
    with pytest.raises(SchemaLimitError, match="schema_chars"):
        read_dtd(Path("main.dtd"), limits=Limits(schema_chars=total - 1))


def test_entities_inside_each_other() -> None:
    """The DTD itself is one."""
    limits = Limits(schema_entities=4)
    text = "<!ENTITY % a '<!---->'><!ENTITY % b '&#37;a;'><!ENTITY % c '&#37;b;'>"
    parse_dtd(f"{text}%c;%c;", limits)
    error = refused(f"{text}<!ENTITY % d '&#37;c;'>\n%d;", "schema_entities", limits)
    assert error.line == 2
    assert "(in %b;, in %c;, in %d;)" in str(error)


@pytest.mark.parametrize("mark", ["&", "&#37;"])
def test_entities_inside_each_other_in_values(mark: str) -> None:
    percent = "% " if mark == "&#37;" else ""
    limits = Limits(schema_entities=4)
    text = f"<!ENTITY {percent}a0 'x'>" + "".join(
        f"<!ENTITY {percent}a{n} '{mark}a{n - 1};'>" for n in range(1, 9)
    )
    for number in range(9):
        use = f"<!ENTITY e '%a{number};'>" if percent else f"<!ATTLIST a b CDATA '&a{number};'>"
        if number < 4:
            parse_dtd(text + use, limits)
        else:
            refused(text + use, "schema_entities", limits)


def test_files_inside_each_other(write: Write) -> None:
    write({f"{n}.mod": f"<!ENTITY % p{n} SYSTEM '{n + 1}.mod'>%p{n};" for n in range(200)})
    with pytest.raises(SchemaLimitError, match="the limit schema_entities = 100") as caught:
        read_dtd(Path("0.mod"))
    assert caught.value.file is not None
    assert caught.value.file.endswith("/99.mod")


def test_nesting() -> None:
    limits = Limits(schema_nesting=4)
    parse_dtd("<!ELEMENT a ((((b)),c),((d)))><!ELEMENT b ((((b))))>", limits)
    error = refused("<!ELEMENT a (b,\n(((d,(c)))))>", "schema_nesting", limits)
    assert (error.line, error.column) == (2, 7)


def test_the_default_nesting_is_reached() -> None:
    most = Limits().schema_nesting
    (element,) = parse_dtd(f"<!ELEMENT a {'(' * most}b{')' * most}>").elements.values()
    assert str(element.model) == "(" * most + "b" + ")" * most
    assert element.children == ("b",)
    refused(f"<!ELEMENT a {'(' * (most + 1)}b{')' * (most + 1)}>", "schema_nesting")


# -- documents ---------------------------------------------------------------------------------

LIMITS = Limits(schema_chars=100)


def doctype(text: str, write: Write) -> Dtd:
    write({"main.xml": text})
    return read_doctype(Path("main.xml"), limits=LIMITS)


def test_of_a_document_its_doctype_is_counted(write: Write) -> None:
    start = "<!DOCTYPE a [<!ELEMENT a ANY>"
    assert list(doctype(f"{start}]><a>{'x' * 5_000}</a>", write).elements) == ["a"]
    space = " " * (LIMITS.schema_chars - 16 - len(f"{start}]>"))
    assert list(doctype(f"{start}{space}]><a>{'x' * 5_000}</a>", write).elements) == ["a"]
    with pytest.raises(SchemaLimitError, match="schema_chars"):
        doctype(f"{start}{space} ]><a/>", write)


@pytest.mark.parametrize("count", [15, 30, 10_000])
def test_a_doctype_without_end(count: int, write: Write) -> None:
    with pytest.raises(SchemaLimitError, match="schema_chars"):
        doctype("<!DOCTYPE a [" + "<!---->" * count, write)
    with pytest.raises(SchemaError):
        doctype("<!DOCTYPE a [<!ATTLIST a " + "b ID #IMPLIED " * count, write)


@pytest.mark.usefixtures("_cheap")
def test_a_file_that_is_no_dtd_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "main.dtd"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SchemaLimitError, match="schema_chars"):
        read_dtd(path)
    (tmp_path / "part.dtd").write_text("<!ENTITY % p SYSTEM 'main.dtd'>%p;")
    with pytest.raises(SchemaLimitError, match="schema_chars"):
        read_dtd(tmp_path / "part.dtd")
    with pytest.raises(SchemaLimitError, match="document_bytes"):
        read_doctype(path)


# -- bombs -------------------------------------------------------------------------------------

SMALL = Limits(schema_chars=1 << 19)


def laughs(innermost: str, use: str, kind: str = "% ", mark: str = "&#37;") -> str:
    """A billion of something."""
    levels = "".join(f"<!ENTITY {kind}l{n} '{f'{mark}l{n - 1};' * 10}'>\n" for n in range(1, 10))
    return f'<!ENTITY {kind}l0 "{innermost}">\n{levels}{use}'


LONG = "x" * 50_000
BOMBS = {
    "nothing": laughs("", "%l9;"),
    "space": laughs(" " * 100, "%l9;"),
    "comments": laughs(f"<!--{'x' * 50}-->", "%l9;"),
    "PIs": laughs("<?x?>", "%l9;"),
    "attributes": laughs("<!ATTLIST a b CDATA 'x'>", "%l9;"),
    "entities": laughs("<!ENTITY e 'x'>", "%l9;"),
    "sections": laughs("<![INCLUDE[]]>", "%l9;"),
    "ignored": laughs("<![IGNORE[]]>", "%l9;"),
    "undeclared": laughs("&#37;gone;", "%l9;"),
    "in a model": laughs("| b", "<!ELEMENT a (#PCDATA %l9;)*>"),
    "in an attribute list": laughs(" b ID #IMPLIED ", "<!ATTLIST a %l9;>"),
    "in an enumeration": laughs("|b", "<!ATTLIST a b (b%l9;) #IMPLIED>"),
    "in a value": laughs("x", "<!ENTITY e '%l9;'>"),
    "in the values of entities": laughs("x", "", mark="%"),
    "in a default": laughs("x", "<!ATTLIST a b CDATA '&l9;'>", kind="", mark="&"),
    "quadratic": f"<!ENTITY % q '<!--{LONG}-->'>{'%q;' * 20_000}",
    "quadratic value": f"<!ENTITY % q '{LONG}'><!ENTITY e '{'%q;' * 20_000}'>",
    "quadratic default": f"<!ENTITY q '{LONG}'><!ATTLIST a b CDATA '{'&q;' * 20_000}'>",
}


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bombs(text: str) -> None:
    refused(text, "schema_chars", SMALL)


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize("name", ["comments", "quadratic value"])
def test_bombs_within_the_default_limits(name: str) -> None:
    refused(BOMBS[name], "schema_chars")


@pytest.mark.usefixtures("_cheap")
def test_bombs_of_files(write: Write) -> None:
    """Each file is read once, and counted at each use."""
    files = {f"{n}.mod": f"%p{n + 1};" * 10 for n in range(9)}
    declared = "".join(f"<!ENTITY % p{n} SYSTEM '{n}.mod'>" for n in range(10))
    write({**files, "9.mod": "", "main.dtd": f"{declared}%p0;"})
    with pytest.raises(SchemaLimitError, match="schema_chars"):
        read_dtd(Path("main.dtd"), limits=SMALL)


# Texts that are long but no bombs, and what comes of each: the limit, a fault, or elements.
LARGE = {
    "too many declarations": ("<!---->" * 150_000, SchemaLimitError),
    "parentheses": ("<!ELEMENT a " + "(" * 500_000, SchemaLimitError),
    "sections": ("<![INCLUDE[" * 50_000 + "]]>" * 50_000, None),
    "sections without end": ("<![INCLUDE[" * 50_000, SchemaSyntaxError),
    "ignored sections": ("<![IGNORE[" + "<![" * 100_000 + "]]>" * 100_001, None),
    "ignored sections without end": ("<![IGNORE[" * 90_000, SchemaSyntaxError),
    "undeclared, all the same": ("%p;" * 80_000, None),
    "undeclared, each another": ("".join(f"%p{n};" for n in range(40_000)), None),
    "one name": ("<!ELEMENT " + "a" * 900_000 + " ANY>", None),
    "one reference without end": ("%" + "a" * 900_000, SchemaSyntaxError),
    "marks": ("%" * 900_000, SchemaSyntaxError),
    "references without end": ("<!ENTITY e '" + "&a" * 400_000 + "'>", SchemaSyntaxError),
    "a number": ("<!ENTITY e '&#" + "9" * 900_000 + ";'>", SchemaSyntaxError),
    "zeros": ("<!ENTITY e '&#" + "0" * 900_000 + "65;'>", None),
    "a quote without end": ("<!ENTITY e '" + "x" * 900_000, SchemaSyntaxError),
    "quotes": ('<!ENTITY e "' + "'" * 900_000, SchemaSyntaxError),
    "a comment without end": ("<!--" + "- " * 400_000, SchemaSyntaxError),
    "a PI without end": ("<?p " + "?" * 900_000, SchemaSyntaxError),
    "comments' beginnings": ("<!-- " * 200_000, SchemaSyntaxError),
    "space": (" " * 500_000 + "\n" * 500_000 + "<!ELEMENT a ANY>", None),
    "lines before a fault": ("\n" * 900_000 + "x", SchemaSyntaxError),
    "a choice": ("<!ELEMENT a (" + "b|" * 80_000 + "b)>", None),
    "groups": ("<!ELEMENT a (" + "(b)," * 50_000 + "b)>", None),
    "mixed": ("<!ELEMENT a (#PCDATA" + "|b" * 80_000 + ")*>", None),
    "attributes": ("<!ATTLIST a " + " b ID #IMPLIED" * 20_000 + ">", None),
    "an enumeration": ("<!ATTLIST a b (" + "x|" * 80_000 + "x) 'x'>", None),
    "a text declaration": ("<?xml " + " " * 900_000 + "version='1.0'", SchemaSyntaxError),
    "text declarations": ("<?xml version='1.0' " * 40_000, SchemaSyntaxError),
    "system identifiers": ("<!ENTITY % p SYSTEM '" + "a/" * 450_000 + "'>%p;%p;", None),
}


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize(("text", "expected"), LARGE.values(), ids=LARGE)
def test_large(text: str, expected: type[SchemaError] | None) -> None:
    if expected is None:
        parse_dtd(text, Limits(schema_chars=1 << 20, schema_entities=10))
    else:
        with pytest.raises(expected):
            parse_dtd(text, Limits(schema_chars=1 << 20))


# What looks for files, which costs more than its characters.
SEARCHES = {
    "one long identifier": "<!ENTITY % p SYSTEM '" + "a/" * 450_000 + "'>%p;",
    "one identifier, often": "<!ENTITY % p SYSTEM '" + "a/" * 30 + "'>" + "%p;" * 60_000,
    "many identifiers": "".join(
        f"<!ENTITY % p{n} SYSTEM '{n}/{'a/' * 30}'>%p{n};" for n in range(9_000)
    ),
    "many steps up": "<!ENTITY % p SYSTEM '" + "../" * 300_000 + "etc/passwd'>%p;",
}


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize("text", SEARCHES.values(), ids=SEARCHES)
def test_searches(text: str, write: Write) -> None:
    write({"main.dtd": text, "catalog1/x": "", "catalog2/x": ""})
    catalog = [Path("catalog1"), Path("catalog2")]
    try:
        dtd = read_dtd(Path("main.dtd"), catalog, Limits(schema_chars=1 << 20))
    except SchemaLimitError as error:
        assert "schema_chars" in str(error)  # noqa: PT017
    else:
        assert len(dtd.missing) == 1
