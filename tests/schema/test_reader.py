"""What is read in DTDs: a case for each construct and trap."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.core.errors import SchemaError, UnreadableSchema
from tamis.schema.dtd import AttributeType, ContentKind, Dtd, ElementType, Presence
from tamis.schema.reader import parse_dtd, read_doctype, read_dtd
from tests.schema.against_expat import read_with_expat

Write = Callable[..., None]


def said(dtd: Dtd) -> str:
    """All elements with their attributes, as short text."""
    return "; ".join(_element(element) for element in dtd.elements.values())


def _element(element: ElementType) -> str:
    content = str(element.model)
    if element.kind in (ContentKind.EMPTY, ContentKind.ANY):
        content = element.kind.value
    elif element.kind is ContentKind.MIXED:
        content = "text" if element.model is None else f"text{element.model}"
    return " ".join([element.name, content, *map(_attribute, element.attributes)])


def _attribute(attribute: AttributeType) -> str:
    values = f"({'|'.join(attribute.values)})" if attribute.values else ""
    shown = "" if attribute.default is None else f"={attribute.default!r}"
    presence = "" if attribute.presence is Presence.DEFAULT else attribute.presence.value
    return f"@{attribute.name}:{attribute.kind.value}{values}{presence}{shown}"


# What is read of each text, one DTD of its own; expat says the same of it all.
CASES = {
    "nothing": ("", ""),
    "order of declarations": (
        "<!ATTLIST b x ID #IMPLIED><!ELEMENT c ANY><!ELEMENT a EMPTY><!ELEMENT b ANY>",
        "c ANY; a EMPTY; b ANY @x:ID#IMPLIED",
    ),
    "attributes of no element": ("<!ATTLIST a x ID #IMPLIED><!ELEMENT b ANY>", "b ANY"),
    "the first of an attribute": (
        "<!ELEMENT a ANY><!ATTLIST a x CDATA '1' x CDATA '2'><!ATTLIST a y ID #IMPLIED x ID '3'>",
        "a ANY @x:CDATA='1' @y:ID#IMPLIED",
    ),
    "the first of an entity": (
        "<!ENTITY % p 'a'><!ENTITY % p 'b'><!ENTITY e '1'><!ENTITY e '2'>"
        "<!ELEMENT %p; ANY><!ATTLIST a x CDATA '&e;'>",
        "a ANY @x:CDATA='1'",
    ),
    "entities of two kinds share no names": (
        "<!ENTITY % e 'a'><!ENTITY e 'b'><!ELEMENT %e; ANY><!ATTLIST a x CDATA '&e;'>",
        "a ANY @x:CDATA='b'",
    ),
    # content
    "sequence": ("<!ELEMENT a (b, c?,d*\n,\te+)>", "a (b, c?, d*, e+)"),
    "choice": ("<!ELEMENT a (b|c?\n| d)+>", "a (b | c? | d)+"),
    "groups": ("<!ELEMENT a (((b?)+, (c|(d,e)*))?, f)>", "a (((b?)+, (c | (d, e)*))?, f)"),
    "one part": ("<!ELEMENT a (b)><!ELEMENT c ((b))*>", "a (b); c ((b))*"),
    "the same part twice": ("<!ELEMENT a (b, c, b)>", "a (b, c, b)"),
    "text": ("<!ELEMENT a (#PCDATA)><!ELEMENT b ( #PCDATA )*>", "a text; b text"),
    "text and elements": (
        "<!ELEMENT a ( #PCDATA|b | c )*><!ELEMENT d (#PCDATA|b)*>",
        "a text(b | c)*; d text(b)*",
    ),
    "an element twice in mixed content": ("<!ELEMENT a (#PCDATA|b|b)*>", "a text(b)*"),
    "no spaces at the end": ("<!ELEMENT a EMPTY><!ELEMENT b (c)\n>", "a EMPTY; b (c)"),
    # names
    "colons": (
        "<!ELEMENT p:a (q:b, c:d:e)><!ATTLIST p:a xmlns:p CDATA 'u' xmlns CDATA 'v' :x ID '_'>",
        "p:a (q:b, c:d:e) @xmlns:p:CDATA='u' @xmlns:CDATA='v' @:x:ID='_'",
    ),
    "not ASCII": ("<!ELEMENT élan (日本|a·b)>", "élan (日本 | a·b)"),
    "like keywords": (
        "<!ELEMENT EMPTY (ANY,ELEMENT)><!ATTLIST EMPTY CDATA CDATA 'x' ID ID #REQUIRED>",
        "EMPTY (ANY, ELEMENT) @CDATA:CDATA='x' @ID:ID#REQUIRED",
    ),
    # attributes
    "types": (
        "<!ELEMENT a ANY><!ATTLIST a b CDATA #IMPLIED c IDREF #REQUIRED d IDREFS 'x  y' "
        "e NMTOKEN #FIXED '1' f NMTOKENS ' 1\t2 '>",
        "a ANY @b:CDATA#IMPLIED @c:IDREF#REQUIRED @d:IDREFS='x y' @e:NMTOKEN#FIXED='1' "
        "@f:NMTOKENS='1 2'",
    ),
    "enumerations": (
        "<!ELEMENT a ANY><!ATTLIST a b (x|1 |-|.y:z) '1' c (x) #REQUIRED>",
        "a ANY @b:enumeration(x|1|-|.y:z)='1' @c:enumeration(x)#REQUIRED",
    ),
    "a value twice": (
        "<!ELEMENT a ANY><!ATTLIST a b (x|y|x) #IMPLIED>",
        "a ANY @b:enumeration(x|y)#IMPLIED",
    ),
    "notations and entities": (
        "<!NOTATION n SYSTEM 'v'><!NOTATION m PUBLIC 'p'><!NOTATION o PUBLIC 'p' 'v'>"
        "<!ENTITY u SYSTEM 'f' NDATA n><!ELEMENT a ANY>"
        "<!ATTLIST a b NOTATION (n|m) #IMPLIED c ENTITY 'u' d ENTITIES ' u  u '>",
        "a ANY @b:NOTATION(n|m)#IMPLIED @c:ENTITY='u' @d:ENTITIES='u u'",
    ),
    "no attributes": ("<!ELEMENT a ANY><!ATTLIST a><!ATTLIST a >", "a ANY"),
    "quotes": (
        """<!ELEMENT a ANY><!ATTLIST a b CDATA 'x"y' c CDATA "x'y" d CDATA '>' e CDATA ''>""",
        """a ANY @b:CDATA='x"y' @c:CDATA="x'y" @d:CDATA='>' @e:CDATA=''""",
    ),
    "a default that its type does not allow": (
        "<!ELEMENT a ANY><!ATTLIST a b NMTOKEN '' c IDREF '1' d (x) 'y'>",
        "a ANY @b:NMTOKEN='' @c:IDREF='1' @d:enumeration(x)='y'",
    ),
    # values
    "white space": (
        "<!ELEMENT a ANY><!ATTLIST a b CDATA ' x\ty\nz  ' c NMTOKENS '\n x\ty\n\nz  '>",
        "a ANY @b:CDATA=' x y z  ' @c:NMTOKENS='x y z'",
    ),
    "white space by number": (
        "<!ELEMENT a ANY><!ATTLIST a b CDATA '&#9;&#10;&#32;' c NMTOKENS 'x&#9;&#32;&#32;y&#10;'>",
        "a ANY @b:CDATA='\\t\\n ' @c:NMTOKENS='x\\t y\\n'",
    ),
    "white space in entities": (
        "<!ENTITY e ' x\t&#9;&#38;#9;'><!ELEMENT a ANY><!ATTLIST a b CDATA '&e;' c NMTOKEN '&e;'>",
        "a ANY @b:CDATA=' x  \\t' @c:NMTOKEN='x \\t'",
    ),
    "characters by number": (
        "<!ELEMENT a ANY><!ATTLIST a b CDATA '&#65;&#x42;&#x1F600;&#000000000000067;&#xe9;'>",
        "a ANY @b:CDATA='AB😀Cé'",
    ),
    "predefined entities": (
        "<!ELEMENT a ANY><!ATTLIST a b CDATA '&lt;&gt;&amp;&apos;&quot;&amp;lt;'>",
        "a ANY @b:CDATA='<>&\\'\"&lt;'",
    ),
    "predefined entities in entities": (
        "<!ENTITY e '&lt;&amp;e;&#38;lt;'><!ELEMENT a ANY><!ATTLIST a b CDATA '[&e;]'>",
        "a ANY @b:CDATA='[<&e;<]'",
    ),
    "predefined entities declared": (
        "<!ENTITY lt '&#38;#60;'><!ENTITY amp '&#38;#38;'><!ENTITY gt '&#62;'>"
        "<!ELEMENT a ANY><!ATTLIST a b CDATA '&lt;&amp;&gt;'>",
        "a ANY @b:CDATA='<&>'",
    ),
    "markup by number in entities": (
        "<!ENTITY e '&#38;#60;&#38;#38;'><!ELEMENT a ANY><!ATTLIST a b CDATA '&e;'>",
        "a ANY @b:CDATA='<&'",
    ),
    "entities in entities": (
        "<!ENTITY e '[&f;]'><!ENTITY f '&g;&g;'><!ENTITY g 'x'>"
        "<!ELEMENT a ANY><!ATTLIST a b CDATA '&e;&e;'>",
        "a ANY @b:CDATA='[xx][xx]'",
    ),
    "percent signs in values of attributes": (
        "<!ENTITY % p 'x'><!ELEMENT a ANY><!ATTLIST a b CDATA '100% %p; %'>",
        "a ANY @b:CDATA='100% %p; %'",
    ),
    "quotes in entities": (
        '<!ENTITY e \'&#34;&#39;"\'><!ELEMENT a ANY><!ATTLIST a b CDATA "&e;">',
        "a ANY @b:CDATA='\"\\'\"'",
    ),
    "an entity that refers to itself, unused": ("<!ENTITY e '&e;'><!ELEMENT a ANY>", "a ANY"),
    # parameter entities
    "whole declarations": ("<!ENTITY % p '<!ELEMENT a ANY><!--x-->'>%p;", "a ANY"),
    "a whole content model": ("<!ENTITY % p '(b|c)*'><!ELEMENT a %p;>", "a (b | c)*"),
    "parts of a choice": ("<!ENTITY % p 'b|c'><!ELEMENT a (%p;)*>", "a (b | c)*"),
    "parts after text": ("<!ENTITY % p '| b|c'><!ELEMENT a (#PCDATA%p;)*>", "a text(b | c)*"),
    "parts before text": ("<!ENTITY % p '#PCDATA|b'><!ELEMENT a (%p;|c)*>", "a text(b | c)*"),
    "no parts after text": ("<!ENTITY % p ''><!ELEMENT a (#PCDATA%p;)*>", "a text"),
    "parts with a separator": ("<!ENTITY % p 'b,'><!ELEMENT a (%p; c)>", "a (b, c)"),
    "nothing between parts": ("<!ENTITY % p ' '><!ELEMENT a (b%p;,%p;c)>", "a (b, c)"),
    "a group with its mark": ("<!ENTITY % p '(b,c)+'><!ELEMENT a (%p;,d)>", "a ((b, c)+, d)"),
    "entities around a model": (
        "<!ENTITY % p '(b'><!ENTITY % q ')*'><!ELEMENT a %p; %q;>",
        "a (b)*",
    ),
    "its edges are white space": (
        "<!ENTITY % p 'a'><!ENTITY % q 'EMPTY'><!ELEMENT%p;EMPTY>"
        "<!ENTITY % r 'x CDATA'><!ATTLIST a%r;'1'>",
        "a EMPTY @x:CDATA='1'",
    ),
    "attributes": (
        "<!ENTITY % p \"x CDATA '1'\"><!ELEMENT a ANY><!ATTLIST a %p; y ID #IMPLIED %p;>",
        "a ANY @x:CDATA='1' @y:ID#IMPLIED",
    ),
    "a type": (
        "<!ENTITY % p '(x|y)'><!ENTITY % q '|z'><!ELEMENT a ANY>"
        "<!ATTLIST a b %p; 'x' c (y%q;) #IMPLIED>",
        "a ANY @b:enumeration(x|y)='x' @c:enumeration(y|z)#IMPLIED",
    ),
    "a value with its quotes": (
        "<!ENTITY % p '\"x\"'><!ELEMENT a ANY><!ATTLIST a b CDATA %p;><!ENTITY e %p;>",
        "a ANY @b:CDATA='x'",
    ),
    "a declaration of an entity": (
        "<!ENTITY % p \"e 'x'\"><!ENTITY %p;><!ELEMENT a ANY><!ATTLIST a b CDATA '&e;'>",
        "a ANY @b:CDATA='x'",
    ),
    "in the value of an entity": (
        "<!ENTITY % p 'x'><!ENTITY e '[%p;]'><!ELEMENT a ANY><!ATTLIST a b CDATA '&e;'>",
        "a ANY @b:CDATA='[x]'",
    ),
    "with quotes in the value of an entity": (
        "<!ENTITY % p '\"'><!ENTITY e \"%p;x%p;\"><!ELEMENT a ANY><!ATTLIST a b CDATA '&e;'>",
        "a ANY @b:CDATA='\"x\"'",
    ),
    "a percent sign by number": (
        "<!ENTITY % p '&#37;q;'><!ENTITY % q '<!ELEMENT a ANY>'>%p;",
        "a ANY",
    ),
    "a percent sign by number in the value of an entity": (
        "<!ENTITY % q 'x'><!ENTITY % p '&#37;q;'><!ENTITY e '%p;&#37;q;'>"
        "<!ELEMENT a ANY><!ATTLIST a b CDATA '&e;'>",
        "a ANY @b:CDATA='x%q;'",
    ),
    "a percent sign that stays one": (
        "<!ENTITY % p '&#38;#37;q;'><!ENTITY e '%p;'><!ELEMENT a ANY><!ATTLIST a b CDATA '&e;'>",
        "a ANY @b:CDATA='%q;'",
    ),
    # The example of appendix D of XML 1.0.
    "an entity that declares an entity": (
        "<!ENTITY % xx '&#37;zz;'><!ENTITY % zz '&#60;!ENTITY tricky \"error-prone\" >' > %xx;"
        "<!ELEMENT a ANY><!ATTLIST a b CDATA 'This sample shows a &tricky; method.'>",
        "a ANY @b:CDATA='This sample shows a error-prone method.'",
    ),
    # sections
    "included": ("<![INCLUDE[<!ELEMENT a ANY>]]><![ INCLUDE\n[ ]]>", "a ANY"),
    "ignored": ("<![IGNORE[<!ELEMENT a ANY>]]><!ELEMENT b ANY>", "b ANY"),
    "ignored rubbish": ("<![IGNORE[<!ELEMENT \"' & %x; <! > ] ]]]]><!ELEMENT b ANY>", "b ANY"),
    "ignored in ignored": ("<![IGNORE[<![ANY[]]><![[ ]]> x]]><!ELEMENT b ANY>", "b ANY"),
    "included in ignored": ("<![IGNORE[<![INCLUDE[<!ELEMENT a ANY>]]>]]><!ELEMENT b ANY>", "b ANY"),
    "ignored in included": (
        "<![INCLUDE[<!ELEMENT a ANY><![IGNORE[x]]><!ELEMENT b ANY>]]><!ELEMENT c ANY>",
        "a ANY; b ANY; c ANY",
    ),
    "chosen by entities": (
        "<!ENTITY % yes 'INCLUDE'><!ENTITY % no ' IGNORE '><!ENTITY % no 'INCLUDE'>"
        "<![%yes;[<!ELEMENT a ANY>]]><![ %no; [<!ELEMENT a EMPTY>]]>",
        "a ANY",
    ),
    "in an entity": ("<!ENTITY % p '<![INCLUDE[<!ELEMENT a ANY>]]>'>%p;", "a ANY"),
    "an entity in it": ("<!ENTITY % p '<!ELEMENT a ANY>'><![INCLUDE[%p;]]>", "a ANY"),
    # comments, PIs
    "comments": ("<!----><!-- <!ELEMENT b ANY> %p; - ]]> --><!ELEMENT a ANY><!--->-->", "a ANY"),
    "PIs": ("<?p?><?p:q <!ELEMENT b ANY>?><?xml-stylesheet x??><!ELEMENT a ANY>", "a ANY"),
    "a text declaration": ("<?xml version='1.0' encoding='utf-8' ?><!ELEMENT a ANY>", "a ANY"),
    "a text declaration without a version": ('<?xml encoding = "UTF-8"?><!ELEMENT a ANY>', "a ANY"),
    "line ends": ("<!ELEMENT\r\na\rANY\r>", "a ANY"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_case(text: str, expected: str) -> None:
    dtd = parse_dtd(text)
    assert said(dtd) == expected
    assert dtd.missing == ()


# What expat refuses, and neither XML nor libxml2 does.
NOT_EXPATS = ["an entity in it"]


@pytest.mark.parametrize("name", CASES)
def test_case_with_expat(name: str) -> None:
    text, _ = CASES[name]
    theirs = read_with_expat(text)
    if name in NOT_EXPATS:
        assert theirs is None
    else:
        assert theirs is not None
        assert list(parse_dtd(text).elements.values()) == list(theirs.elements.values())


def test_children() -> None:
    dtd = parse_dtd("<!ELEMENT a ((b, c)*, (p:d | b)?)><!ELEMENT t (#PCDATA | b)*><!ELEMENT e ANY>")
    assert [element.children for element in dtd.elements.values()] == [
        ("b", "c", "p:d"),
        ("b",),
        (),
    ]


def test_unparsed_entities() -> None:
    dtd = parse_dtd("""<!ENTITY e 'x'><!ENTITY u SYSTEM 'f' NDATA n><!ENTITY x SYSTEM 'f'>
        <!ENTITY v PUBLIC 'p' 'f' NDATA n><!ENTITY u SYSTEM 'g' NDATA m>
        <!ENTITY e SYSTEM 'f' NDATA n>""")
    assert dtd.unparsed_entities == ("u", "v")


# -- files -------------------------------------------------------------------------------------

# The files (the first is read), what is read, and what is missing. Catalogues are the folders that
# begin with "catalog"; "outside" is none.
FILES: dict[str, tuple[dict[str, str], str, tuple[str, ...]]] = {
    "beside": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'p.mod'>%p;", "p.mod": "<!ELEMENT a ANY>"},
        "a ANY",
        (),
    ),
    "public": (
        {"main.dtd": "<!ENTITY % p PUBLIC '-//X' 'p.mod'>%p;", "p.mod": "<!ELEMENT a ANY>"},
        "a ANY",
        (),
    ),
    "a folder below": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'd/p.mod'>%p;", "d/p.mod": "<!ELEMENT a ANY>"},
        "a ANY",
        (),
    ),
    "relative to the part that declares": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'd/p.mod'>%p; %q;",
            "d/p.mod": "<!ENTITY % q SYSTEM 'q.mod'><!ENTITY % r SYSTEM '../r.mod'>%r;",
            "d/q.mod": "<!ELEMENT a ANY>",
            "q.mod": "<!ELEMENT wrong ANY>",
            "r.mod": "<!ELEMENT b ANY>",
        },
        "b ANY; a ANY",
        (),
    ),
    "an address, beside": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'http://x.invalid/1/p.mod'>%p;",
            "p.mod": "<!ELEMENT a ANY>",
        },
        "a ANY",
        (),
    ),
    "an address, by as much of its path as there is": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'http://x.invalid/v/1/p.mod'>%p;",
            "catalog/p.mod": "<!ELEMENT wrong ANY>",
            "catalog/1/p.mod": "<!ELEMENT a ANY>",
        },
        "a ANY",
        (),
    ),
    "an address of a file that is not there, but beside": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'file:///v/p.mod'>%p;", "p.mod": "<!ELEMENT a ANY>"},
        "a ANY",
        (),
    ),
    "the first catalogue": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'p.mod'>%p;",
            "catalog1/x.mod": "",
            "catalog2/p.mod": "<!ELEMENT a ANY>",
            "catalog3/p.mod": "<!ELEMENT wrong ANY>",
        },
        "a ANY",
        (),
    ),
    "beside a part in a catalogue": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'http://x.invalid/d/p.mod'>%p;",
            "catalog/d/p.mod": "<!ENTITY % q SYSTEM 'q.mod'>%q;",
            "catalog/d/q.mod": "<!ELEMENT a ANY>",
        },
        "a ANY",
        (),
    ),
    "outside": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM '../outside/p.mod'>%p;<!ELEMENT a ANY>",
            "../outside/p.mod": "<!ELEMENT wrong ANY>",
        },
        "a ANY",
        ("../outside/p.mod",),
    ),
    "outside, through a folder": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'd/../../outside/p.mod'>%p;<!ELEMENT a ANY>",
            "d/x": "",
            "../outside/p.mod": "<!ELEMENT wrong ANY>",
        },
        "a ANY",
        ("d/../../outside/p.mod",),
    ),
    "outside, beside a folder of like name": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM '../main-not/p.mod'>%p;<!ELEMENT a ANY>",
            "../main-not/p.mod": "<!ELEMENT wrong ANY>",
        },
        "a ANY",
        ("../main-not/p.mod",),
    ),
    "a folder": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'd'>%p;<!ENTITY % q SYSTEM ''>%q;", "d/x": ""},
        "",
        ("d", ""),
    ),
    "missing, with what it would declare": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'gone.mod'>%p; <!ELEMENT a (b%p;%x;)>"
            "<!ATTLIST a c CDATA '[&e;]'><!ENTITY f '[%y;]'>"
        },
        "a (b) @c:CDATA='[]'",
        ("gone.mod", "%x;", "&e;", "%y;"),
    ),
    "not used": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'gone'><!ENTITY e SYSTEM 'gone'><!ELEMENT a ANY>"},
        "a ANY",
        (),
    ),
    "inside a declaration": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'p.mod'><!ELEMENT a (b%p;)>", "p.mod": ",\nc"},
        "a (b, c)",
        (),
    ),
    "in the value of an entity, without its text declaration": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'p'><!ENTITY e '%p;'><!ELEMENT a ANY>"
            "<!ATTLIST a b CDATA '&e;'>",
            "p": "<?xml version='1.0' encoding='utf-8'?>x%q;",
            "q": "",
        },
        "a ANY @b:CDATA='x'",
        ("%q;",),
    ),
    "a part used twice": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'p'><!ELEMENT a (%p;)><!ELEMENT b (%p;)>", "p": "c | d"},
        "a (c | d); b (c | d)",
        (),
    ),
    "a document": (
        {
            "main.xml": "<?xml version='1.0'?>\n<!-- c --><?p?><!DOCTYPE r SYSTEM 'main.dtd'><r/>",
            "main.dtd": "<!ELEMENT r ANY>",
        },
        "r ANY",
        (),
    ),
    "the internal subset is first": (
        {
            "main.xml": """<!DOCTYPE r PUBLIC "-//X" "main.dtd" [
                <!ENTITY % choice 'INCLUDE'><!ENTITY e '1'><!ATTLIST r x CDATA '1'>
                <!ELEMENT s EMPTY>] ><r>]]&gt;</r>""",
            "main.dtd": """<!ENTITY % choice 'IGNORE'><!ENTITY e '2'><!ELEMENT r ANY>
                <![%choice;[<!ELEMENT t EMPTY>]]><!ATTLIST r y CDATA '&e;' x CDATA '2'>""",
        },
        "s EMPTY; r ANY @x:CDATA='1' @y:CDATA='1'; t EMPTY",
        (),
    ),
    "an internal subset alone": (
        {
            "main.xml": "<!DOCTYPE r[<!--]>--><?p ]>?><!ATTLIST r x CDATA ']>'>"
            "<!ELEMENT r ANY>]><r/>"
        },
        "r ANY @x:CDATA=']>'",
        (),
    ),
    "no subset": ({"main.xml": "<!DOCTYPE r ><r/>"}, "", ()),
    "an entity between the declarations of an internal subset": (
        {
            "main.xml": """<!DOCTYPE r [<!ENTITY % p '<!ELEMENT r ANY>'>%p;
                <!ENTITY % q SYSTEM 'q.mod'>%q;]><r/>""",
            "q.mod": "<!ENTITY % n 's'><![INCLUDE[<!ELEMENT %n; EMPTY>]]><!ENTITY e '%n;'>",
        },
        "r ANY; s EMPTY",
        (),
    ),
    "a document whose DTD is missing": (
        {"main.xml": "<!DOCTYPE r SYSTEM 'http://x.invalid/gone.dtd' [<!ELEMENT r ANY>]><r/>"},
        "r ANY",
        ("http://x.invalid/gone.dtd",),
    ),
}


def read_files(files: dict[str, str], write: Write) -> Dtd:
    """What the first file says, which is in a folder of its own, and the test in another."""
    write({f"main/{name}": content for name, content in files.items()})
    catalog = sorted({f"main/{name.split('/')[0]}" for name in files if name.startswith("catalog")})
    first = Path("main") / next(iter(files))
    read = read_doctype if first.suffix == ".xml" else read_dtd
    return read(first, [Path(folder) for folder in catalog])


@pytest.mark.parametrize(("files", "expected", "missing"), FILES.values(), ids=FILES)
def test_files(
    files: dict[str, str],
    expected: str,
    missing: tuple[str, ...],
    write: Write,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "tamis"):
        dtd = read_files(files, write)
    assert said(dtd) == expected
    assert dtd.missing == missing
    assert dtd.root == ("r" if "main.xml" in files else None)
    # Each is told once.
    assert len(caplog.messages) == len(missing)
    for what, message in zip(missing, caplog.messages, strict=True):
        assert what in message
        assert "read on without it" in message


SECRET = "<!ELEMENT secret ANY>"


@pytest.mark.parametrize(
    "system",
    [
        "{}",
        "file://{}",
        "file:{}",
        "file://localhost{}",
        "FILE://{}",
        "//{}",
        "./{}",
        "../secret/p.mod",
        "../../{}",
        "d/../../secret/p.mod",
        "%2e%2e/secret/p.mod",
        "http://../secret/p.mod",
        "x/..//../secret/p.mod",
        "..\\secret\\p.mod",
        "jar:file:{}",
        "{}?x",
        "{}#x",
        "/etc/passwd",
        "file:///etc/passwd",
        "/dev/zero",
        "/proc/self/environ",
        "\x7f",
        "x" * 5000,
        "a/" * 5000,
    ],
)
@pytest.mark.parametrize("internal", [False, True], ids=["external", "internal"])
def test_nothing_outside_is_read(system: str, internal: bool, write: Write, tmp_path: Path) -> None:
    """Neither of a DTD, nor of the internal subset of a document, nor as a document's own DTD."""
    system = system.format(tmp_path / "secret/p.mod")
    text = f"<!ENTITY % p SYSTEM '{system}'>%p;<!ELEMENT a ANY>"
    if internal:
        text = f"<!DOCTYPE r SYSTEM '{system}' [{text}]><r/>"
    write({"secret/p.mod": SECRET, "main/main": text, "main/d/x": "", "catalog/x": ""})
    dtd = (read_doctype if internal else read_dtd)(tmp_path / "main/main", [tmp_path / "catalog"])
    assert said(dtd) == "a ANY"
    assert dtd.missing == (system,)


def test_a_string_has_no_files(write: Write) -> None:
    write({"p.mod": SECRET, "d/p.mod": SECRET})
    assert said(parse_dtd("<!ENTITY % p SYSTEM 'p.mod'>%p;<!ELEMENT a ANY>")) == "a ANY"


def test_a_part_that_may_not_be_read(write: Write) -> None:
    """A file that is there, but is no text, is an error, not missing."""
    write({"main.dtd": "<!ENTITY % p SYSTEM 'p.mod'>\n %p;", "p.mod": b"<!--\n \xff-->"})
    with pytest.raises(UnreadableSchema) as caught:
        read_dtd(Path("main.dtd"))
    assert caught.value.file is not None
    assert caught.value.file.endswith("p.mod")
    assert (caught.value.line, caught.value.column) == (2, 2)


SELVES = {
    "itself": ({"main.dtd": "<!ENTITY % p SYSTEM 'main.dtd'>%p;"}, "%p;"),
    "each other": (
        {
            "main.dtd": "<!ENTITY % p SYSTEM 'p.mod'>%p;",
            "p.mod": "<!ENTITY % q SYSTEM 'main.dtd'>%q;",
        },
        "%p;",
    ),
    "itself, as a model": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'p.mod'><!ELEMENT a (%p;)>", "p.mod": "b, (%p;)"},
        "%p;",
    ),
    "itself, in a value": (
        {"main.dtd": "<!ENTITY % p SYSTEM 'p.mod'><!ENTITY e '%p;'>", "p.mod": "b, (%p;)"},
        "%p;",
    ),
}


@pytest.mark.parametrize(("files", "name"), SELVES.values(), ids=SELVES)
def test_files_that_include_themselves(files: dict[str, str], name: str, write: Write) -> None:
    with pytest.raises(SchemaError, match=f"{name} refers to itself"):
        read_files(files, write)


def test_many_things_missing_are_told_in_part(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tamis"):
        dtd = parse_dtd("".join(f"%p{number};%p0;" for number in range(1000)))
    assert dtd.missing == tuple(f"%p{number};" for number in range(1000))
    assert len(caplog.messages) == 100


# -- encodings ---------------------------------------------------------------------------------

TEXT = "<!ELEMENT é (日本)>"


@pytest.mark.parametrize(
    "data",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?>" + TEXT.encode(),
        TEXT.encode("utf-16"),
        f"<?xml version='1.0' encoding='UTF-16'?>{TEXT}".encode("utf-16"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        f"<?xml version='1.0' encoding='utf-16'?>{TEXT}".encode("utf-16-be"),
        b"<?xml version='1.0' encoding='iso-8859-1'?><!ELEMENT \xe9 (&#x65E5;)>",
        f"<?xml version='1.0' encoding='shift_jisx0213'?>{TEXT}".encode("shift_jisx0213"),
        f"<?xml version='1.0' encoding='gb18030'?>\r\n{TEXT}\r".encode("gb18030"),
    ],
    ids="plain BOM declared UTF-16 declared16 BE BE-marks latin-1 jis gb18030".split(),
)
def test_encodings(data: bytes, write: Write) -> None:
    data = data.replace(b"&#x65E5;", b"b")
    expected = "é (b)" if b"8859" in data else "é (日本)"
    write({"main.dtd": data, "d/main.dtd": "<!ENTITY % p SYSTEM 'p.mod'>%p;", "d/p.mod": data})
    assert said(read_dtd(Path("main.dtd"))) == expected
    assert said(read_dtd(Path("d/main.dtd"))) == expected
    if b"<?xml" in data:
        start, _, rest = data.partition(b"?>")
        write({"main.xml": start + b"?><!DOCTYPE r [" + rest + b"]><r/>"})
        assert said(read_doctype(Path("main.xml"))) == expected


def test_an_encoding_without_a_version(write: Write) -> None:
    write({"main.dtd": b"<?xml encoding='iso-8859-1'?><!ELEMENT \xe9 ANY>"})
    assert said(read_dtd(Path("main.dtd"))) == "é ANY"


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"<!ELEMENT a ANY>\n <!-- \xe9 -->", 2, 7),
        (b"<?xml version='1.0' encoding='us-ascii'?>\n\xc3\xa9", 2, 1),
        (b"<?xml version='1.0' encoding='no-such'?>", 1, 31),
        (b"<?xml version='1.0' encoding='shift_jis'?>\n\n \xfd", 3, 2),
        ("<!--é-->\n".encode("utf-16") + b"\0\xd8", 2, 1),
        (b"\xef\xbb\xbf<!ELEMENT a ANY>\n\xff", 2, 1),
    ],
)
def test_wrong_bytes(data: bytes, line: int, column: int, write: Write) -> None:
    write({"main.dtd": data})
    with pytest.raises(UnreadableSchema) as caught:
        read_dtd(Path("main.dtd"))
    found = caught.value
    assert (found.file, found.line, found.column) == ("main.dtd", line, column)


def test_files_that_are_not_there() -> None:
    for read in (read_dtd, read_doctype):
        for path in ("gone.dtd", "src", "a\0b"):
            with pytest.raises(UnreadableSchema, match=r"No such file|Is a directory|cannot read"):
                read(Path(path))


def test_paths_are_relative_to_the_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """From wherever it is read, with whatever catalogue."""
    write({"d/e/main.dtd": "<!ENTITY % p SYSTEM 'x/p.mod'>%p;", "d/p.mod": "<!ELEMENT a ANY>"})
    monkeypatch.chdir("d/e")
    for catalog in ([Path("..")], [Path("../../d")], [Path("x/../.."), Path("none")]):
        assert said(read_dtd(Path("main.dtd"), catalog)) == "a ANY"
    assert read_dtd(Path("main.dtd"), [Path("../../")]).missing == ("x/p.mod",)
