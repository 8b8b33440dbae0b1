"""What a user reads about a DTD that cannot be used: the whole message, with its place.

Each block of ``errors.txt`` is a DTD, its lines after ``> ``, and the message that it gives, with
the error's code in front. The DTD is the file ``main.dtd``; a line ``> == NAME`` begins another
file, and where there is a ``main.xml``, its DTD is read. To write the present messages into the
file, run these tests with ``TAMIS_WRITE_GOLDEN=1`` and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.core.errors import SchemaError, SchemaSyntaxError
from tamis.core.limits import Limits
from tamis.schema.reader import parse_dtd, read_doctype, read_dtd

GOLDEN = Path(__file__).with_name("errors.txt")
LIMITS = Limits(schema_chars=4_000, schema_entities=5, schema_nesting=5)


def blocks() -> list[tuple[str, str]]:
    """The lines of the files and the message, of each block."""
    found = []
    for block in GOLDEN.read_text(encoding="utf-8").strip("\n").split("\n\n"):
        lines = block.split("\n")
        files = [line.removeprefix(">").removeprefix(" ") for line in lines if line[0] == ">"]
        found.append(("\n".join(files), "\n".join(line for line in lines if line[0] != ">")))
    return found


def message(written: str, write: Callable[..., None]) -> str:
    files: dict[str, list[str]] = {"main.dtd": []}
    name = "main.dtd"
    for line in written.split("\n"):
        if line.startswith("== "):
            name = line.removeprefix("== ")
            files[name] = []
        else:
            files[name].append(line)
    write({name: "\n".join(lines) for name, lines in files.items()})
    read = read_doctype if "main.xml" in files else read_dtd
    with pytest.raises(SchemaError) as caught:
        read(Path("main.xml" if "main.xml" in files else "main.dtd"), limits=LIMITS)
    # Files are named by their absolute paths, but for the first.
    return f"{caught.value.code}: {caught.value}".replace(f"{Path.cwd()}/", "…/")


def test_messages(write: Callable[..., None]) -> None:
    found = [(written, message(written, write)) for written, _ in blocks()]
    if os.environ.get("TAMIS_WRITE_GOLDEN"):
        texts = [
            "\n".join([*(f"> {line}".rstrip() for line in written.split("\n")), said])
            for written, said in found
        ]
        GOLDEN.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    assert found == blocks()


# Each fault, a line for each DTD, with its place marked by ‸ where the message names it.
FAULTS = r"""
<!ELEMENT ‸>
<!ELEMENT a‸>
<!ELEMENT a‸(b)>
<!ELEMENT ‸1a EMPTY>
<!ELEMENT a ‸b>
<!ELEMENT a ‸empty>
<!ELEMENT a EMPTY ‸x>
<!ELEMENT a EMPTY‸
<!ELEMENT a EMPTY ‸-- x -->
<!ELEMENT a ‸<!-- x --> EMPTY>
<!ELEMENT a (‸)>
<!ELEMENT a (b‸>
<!ELEMENT a (b,‸)>
<!ELEMENT a (‸,b)>
<!ELEMENT a (b ‸c)>
<!ELEMENT a (b, c ‸| d)>
<!ELEMENT a (b | c ‸, d)>
<!ELEMENT a (b ‸?)>
<!ELEMENT a (b?‸?)>
<!ELEMENT a (b) ‸?>
<!ELEMENT a (b)‸)>
<!ELEMENT a (b | ‸#PCDATA)*>
<!ELEMENT a (‸#TEXT)>
<!ELEMENT a ((‸#PCDATA))>
<!ELEMENT a (#PCDATA ‸, b)*>
<!ELEMENT a (#PCDATA | ‸(b))*>
<!ELEMENT a (#PCDATA | b‸?)*>
<!ELEMENT a (#PCDATA | ‸#PCDATA)*>
<!ELEMENT a (#PCDATA | b)‸>
<!ELEMENT a (#PCDATA | b)‸ *>
<!ELEMENT a EMPTY><!ELEMENT a ‸ANY>
<!ATTLIST ‸>
<!ATTLIST a b‸>
<!ATTLIST a b ‸cdata #IMPLIED>
<!ATTLIST a b‸(x) #IMPLIED>
<!ATTLIST a b CDATA‸>
<!ATTLIST a b CDATA ‸#NONE>
<!ATTLIST a b CDATA ‸#implied>
<!ATTLIST a b CDATA‸"x">
<!ATTLIST a b CDATA #FIXED‸>
<!ATTLIST a b CDATA #FIXED ‸#IMPLIED>
<!ATTLIST a b CDATA ‸x>
<!ATTLIST a b CDATA ‸"x>
<!ATTLIST a b CDATA "x"‸c CDATA "y">
<!ATTLIST a b CDATA ‸"x<y">
<!ATTLIST a b CDATA ‸"x & y">
<!ATTLIST a b CDATA ‸"x&y">
<!ATTLIST a b CDATA ‸"&gone;">
<!ATTLIST a b CDATA ‸"&#0;">
<!ATTLIST a b CDATA ‸"&#xFFFE;">
<!ATTLIST a b CDATA ‸"&#x110000;">
<!ATTLIST a b CDATA ‸"&#X41;">
<!ATTLIST a b (‸) #IMPLIED>
<!ATTLIST a b (x ‸, y) #IMPLIED>
<!ATTLIST a b (x |‸) #IMPLIED>
<!ATTLIST a b (‸"x") #IMPLIED>
<!ATTLIST a b (x)‸#IMPLIED>
<!ATTLIST a b NOTATION‸(x) #IMPLIED>
<!ATTLIST a b NOTATION ‸x #IMPLIED>
<!ATTLIST a b NOTATION (‸1) #IMPLIED>
<!ENTITY e 'x<'><!ATTLIST a b CDATA ‸'&e;'>
<!ENTITY e '&#60;'><!ATTLIST a b CDATA ‸'&e;'>
<!ENTITY e '&f;'><!ENTITY f '<'><!ATTLIST a b CDATA ‸'&e;'>
<!ENTITY e '&e;'><!ATTLIST a b CDATA ‸'&e;'>
<!ENTITY e '&f;'><!ENTITY f '&e;'><!ATTLIST a b CDATA ‸'&e;'>
<!ENTITY e '&f;'><!ATTLIST a b CDATA ‸'&e;'><!ENTITY f 'x'>
<!ENTITY e SYSTEM 'x'><!ATTLIST a b CDATA ‸'&e;'>
<!ENTITY e SYSTEM 'x' NDATA n><!ATTLIST a b CDATA ‸'&e;'>
<!ENTITY‸>
<!ENTITY e‸>
<!ENTITY e ‸x>
<!ENTITY e‸'x'>
<!ENTITY‸% e 'x'>
<!ENTITY %‸e 'x'>
<!ENTITY e ‸'100%'>
<!ENTITY e ‸'a & b'>
<!ENTITY e ‸'&#xD800;'>
<!ENTITY e SYSTEM‸>
<!ENTITY e SYSTEM‸'x'>
<!ENTITY e SYSTEM ‸x>
<!ENTITY e PUBLIC 'x'‸>
<!ENTITY e PUBLIC 'x'‸'y'>
<!ENTITY e PUBLIC ‸'{x}' 'y'>
<!ENTITY e SYSTEM 'x'‸NDATA n>
<!ENTITY e SYSTEM 'x' NDATA ‸'n'>
<!ENTITY % e SYSTEM 'x' ‸NDATA n>
<!ENTITY e 'x' ‸NDATA n>
<!NOTATION n‸>
<!NOTATION n ‸'x'>
<!NOTATION n PUBLIC ‸'é'>
<!NOTATION n PUBLIC 'x'‸'y'>
‸x
‸<a/>
‸<!DOCTYPE a>
‸<!element a ANY>
‸&a;
‸%
‸% a;
‸%a
‸]]>
‸<!-- x
<!-- x ‸-- y -->
<!-- x ‸--->
‸<? x?>
‸<?x
<?x‸"y"?>
 ‸<?xml version="1.0"?>
‸<?xml?>
‸<?xml rubbish?>
‸<?xml version="1.0" encoding="utf-8" x?>
<![‸include[]]>
<![‸CDATA[]]>
<![INCLUDE ‸<!ELEMENT a ANY>]]>
<![INCLUDE[<!ELEMENT a ANY>‸
<![INCLUDE[<!ELEMENT a ANY>‸]>
<![IGNORE[‸<!ELEMENT a ANY>
<![IGNORE[‸<![x]]>
<!ELEMENT a ANY>‸\x0c
<!ENTITY % p 'a'><!ELEMENT %p;‸b ANY>
<!ENTITY % p 'EMPTY>'><!ELEMENT a ‸%p;
<!ENTITY % p '<!ELEMENT a'>%p; EMPTY‸>
<!ENTITY % p '<!ELEMENT a'>%p;‸
<!ENTITY % p 'b'><!ELEMENT a (%p;‸*)>
<!ENTITY % p '(b)'><!ELEMENT a %p;‸*>
<!ENTITY % p '|b'><!ELEMENT a (‸%p;)>
<!ENTITY % p 'b'><!ATTLIST a %p;‸:c CDATA 'x'>
<!ENTITY % p '"'><!ATTLIST a b CDATA ‸%p;x%p;>
<!ENTITY % p '<!--'>‸%p; -->
<!ENTITY % p '<![INCLUDE['>‸%p; ]]>
<!ENTITY % p 'INCLUDE['><![‸%p; ]]>
<!ENTITY % p '&#37;p;'>‸%p;
<!ENTITY % p '&#37;q;'><!ENTITY % q '&#37;p;'>‸%p;
<!ENTITY % p '&#37;p;'><!ENTITY e ‸'%p;'>
"""


def marked() -> list[tuple[str, int]]:
    lines = [line.replace("\\x0c", "\x0c") for line in FAULTS.strip("\n").split("\n")]
    return [(line.replace("‸", ""), line.index("‸")) for line in lines]


@pytest.mark.parametrize(("text", "place"), marked())
def test_faults_are_found_at_their_place(text: str, place: int) -> None:
    """Alone, and after other lines."""
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_dtd(text)
    assert (caught.value.file, caught.value.line, caught.value.column) == (None, 1, place + 1)
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_dtd(f"<!ENTITY é '日本'>\r\n \r{text}")
    if not text.startswith("<?xml"):
        assert (caught.value.line, caught.value.column) == (3, place + 1)


INTERNAL_FAULTS = r"""
<!DOCTYPE‸>
<!DOCTYPEa‸>
<!DOCTYPE a ‸x>
<!DOCTYPE a SYSTEM‸>
<!DOCTYPE a PUBLIC 'x'‸>
<!DOCTYPE a PUBLIC ‸'{}' 'x'>
<!DOCTYPE a SYSTEM 'x' ‸'y'>
<!DOCTYPE a [‸
<!DOCTYPE a [<!ELEMENT a ANY>‸
<!DOCTYPE a [‸x]>
<!DOCTYPE a []‸x>
<!DOCTYPE a []‸
<!DOCTYPE a [] ‸SYSTEM 'x'>
<!DOCTYPE a [‸<![INCLUDE[]]>]>
<!DOCTYPE a [‸<![IGNORE[]]>]>
<!DOCTYPE a [<!ENTITY % p 'b'><!ELEMENT a (‸%p;)>]>
<!DOCTYPE a [<!ENTITY % p 'b'><!ENTITY e ‸'%p;'>]>
<!DOCTYPE a [<!ENTITY % p 'b'><!ENTITY e '<!ELEMENT a (&#37;p;)>'><!ATTLIST a b CDATA ‸'&e;'>]>
<!DOCTYPE a [<!ENTITY % p '<!ELEMENT a (&#37;p;)>'>‸%p;]>
<!DOCTYPE a [<!ELEMENT a ANY><!ELEMENT a ‸ANY>]>
<!DOCTYPE a [<!ENTITY % p ']'>‸%p;>
"""


@pytest.mark.parametrize("line", INTERNAL_FAULTS.strip("\n").split("\n"))
def test_faults_of_internal_subsets(line: str, write: Callable[..., None]) -> None:
    text, place = line.replace("‸", ""), line.index("‸")
    place = line.index("a‸") if text.startswith("<!DOCTYPEa") else place
    write({"main.xml": "<?xml version='1.0'?>\n" + text})
    with pytest.raises(SchemaSyntaxError) as caught:
        read_doctype(Path("main.xml"))
    found = caught.value
    assert (found.file, found.line, found.column) == ("main.xml", 2, place + 1)


@pytest.mark.parametrize("text", ["", "<a/>", "<!-- <!DOCTYPE a> --><a/>", "<a><!DOCTYPE a></a>"])
def test_documents_without_a_dtd(text: str, write: Callable[..., None]) -> None:
    write({"main.xml": text})
    with pytest.raises(SchemaSyntaxError) as caught:
        read_doctype(Path("main.xml"))
    assert str(caught.value) == "main.xml: the document has no document type declaration"
