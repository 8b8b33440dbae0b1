"""Random DTDs, and real small ones spoiled: lxml and expat judge them alike, and read the same."""

from __future__ import annotations

import re
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tamis.core.errors import SchemaError
from tamis.schema.dtd import Dtd
from tamis.schema.reader import parse_dtd
from tests.schema.against_expat import read_with_expat
from tests.schema.against_lxml import facts, facts_of_lxml, models, models_of_lxml
from tests.schema.strategies import dtds, spoiled

REAL = [
    """<!ELEMENT book (title, (author+ | editor), chapter*)>
<!ATTLIST book year CDATA #REQUIRED lang NMTOKEN "en" kind (paper|web) 'paper'>
<!ELEMENT title (#PCDATA)><!ELEMENT author (#PCDATA | name | p:mail)*>
<!-- more --><!ELEMENT editor EMPTY><!ELEMENT chapter ANY>""",
    """<!ENTITY % local ""><!ENTITY % inline "em | b %local;">
<!ENTITY % attrs "id ID #IMPLIED class NMTOKENS #IMPLIED">
<!ENTITY company "A&#38;#38;B"><![INCLUDE[<!ELEMENT p (#PCDATA | %inline;)*>]]>
<!ATTLIST p %attrs; by CDATA #FIXED "&company;"><![IGNORE[<!ELEMENT p (x)>]]>
<!NOTATION gif PUBLIC "-//GIF//EN"><!ENTITY logo SYSTEM "logo.gif" NDATA gif>
<!ELEMENT img EMPTY><!ATTLIST img src ENTITY #REQUIRED type NOTATION (gif) "gif">""",
    """<!ENTITY % yes 'INCLUDE'><!ENTITY % flow '(p | list)+'><![%yes;[
<!ELEMENT list (item+)>]]><!ELEMENT item %flow;><!ATTLIST item n CDATA '&#65;	b' x:m ID #IMPLIED>
<?pi?><!ELEMENT p (#PCDATA)*><!ENTITY % p '<!ELEMENT b EMPTY>'>%p;""",
]


def read(text: str) -> Dtd | str:
    """The message where it is refused; whatever else is raised than a SchemaError is a fault."""
    try:
        return parse_dtd(text)
    except SchemaError as error:
        return error.message


def read_with_lxml(text: str) -> etree.DTD | None:
    """As a file, from where libxml2 knows its own line ends."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="", suffix=".dtd") as file:
        file.write(text)
        file.flush()
        try:
            return etree.DTD(file.name)
        except etree.DTDParseError:
            return None


# Where lxml (libxml2) judges otherwise: who takes such a DTD, what our message (if we refuse it) or
# the text (if we take it) looks like, an example, and why.
DIFFERENCES = (
    (
        "lxml",
        "is declared a second time",
        "<!ELEMENT a ANY><!ELEMENT a EMPTY>",
        "a fault of validity: the first binds",
    ),
    (
        "lxml",
        "is not declared",
        "<!ENTITY % p ''>%p;<!ATTLIST a b CDATA '&gone;'>",
        "a fault of validity where there are parameter entities, all read or not",
    ),
    (
        "lxml",
        "it may be for want of",
        "<!ENTITY % p '%gone;x'>%p;",
        "an entity with an undeclared one in its value is none at all",
    ),
    (
        "lxml",
        "expected the name of a notation, found '>'",
        "<!ENTITY e SYSTEM 'x' NDATA >",
        "a fault of libxml2's",
    ),
    (
        "lxml",
        "no character of XML",
        "<![IGNORE[ \x0c ]]>",
        "does not look at the characters of ignored sections",
    ),
    (
        "tamis",
        r"%[\w.:-]+;",
        "<!ENTITY % p '(b'><!ELEMENT a %p;)>",
        "groups that end in another entity are a fault of validity only",
    ),
    (
        "tamis",
        r"<!ENTITY\s+%%",
        "<!ENTITY %%gone; p 'x'>",
        "undeclared entities have edges, too, which are white space",
    ),
    (
        "tamis",
        r"""["'][^"']*#""",
        "<!ENTITY e SYSTEM 'x#y'>",
        "an error, but none that a reader has to report",
    ),
    (
        "tamis",
        r"<\?xml\s+version=[^ ]*\s*\?>|standalone",
        "<?xml version='1.0'?><!ELEMENT a ANY>",
        "text declarations without an encoding, which people write",
    ),
)


def check_acceptance(text: str, ours: Dtd | str, theirs: etree.DTD | None) -> None:
    if isinstance(ours, Dtd) == (theirs is not None):
        return
    taker, shown = ("tamis", text) if isinstance(ours, Dtd) else ("lxml", ours)
    assert any(who == taker and re.search(looks, shown) for who, looks, _, _ in DIFFERENCES), ours


def without_defaults(found: dict[str, object]) -> dict[str, object]:
    """Facts without the values of defaults.

    libxml2 gives them with references to entities in them, and none that their types do not allow;
    those of enumerations are given twice where they are declared twice.
    """
    return {
        name: (kind, children, {a: (x[0], x[1], sorted(set(x[3]))) for a, x in attributes.items()})
        for name, (kind, children, attributes) in found.items()  # type: ignore[misc]
    }


def check_facts(ours: Dtd, theirs: etree.DTD) -> None:
    assert without_defaults(facts(ours)) == without_defaults(facts_of_lxml(theirs))
    assert models(ours) == models_of_lxml(theirs)


@settings(max_examples=120, deadline=None)
@given(dtds())
def test_drawn(text: str) -> None:
    ours, theirs, expats = read(text), read_with_lxml(text), read_with_expat(text)
    check_acceptance(text, ours, theirs)
    if isinstance(ours, Dtd):
        assert ours.missing == ()
        if theirs is not None:
            check_facts(ours, theirs)
        if expats is None:  # it refuses references to parameter entities in included sections
            assert re.search(r"<!\[.*%", text, re.DOTALL)
        else:
            assert list(ours.elements.values()) == list(expats.elements.values())
    elif expats is not None:
        assert re.search("is declared a second time", ours)


@settings(max_examples=250, deadline=None)
@given(spoiled(st.one_of(st.sampled_from(REAL), st.sampled_from(REAL), dtds())))
def test_spoiled(text: str) -> None:
    ours, theirs = read(text), read_with_lxml(text)
    check_acceptance(text, ours, theirs)
    if isinstance(ours, Dtd) and theirs is not None and not ours.missing:
        check_facts(ours, theirs)
        expats = read_with_expat(text)
        if expats is not None:
            assert list(ours.elements.values()) == list(expats.elements.values())


@pytest.mark.parametrize("text", REAL)
def test_the_real_ones_are_good(text: str) -> None:
    """The canary: were they refused, the spoiled ones would show little."""
    ours, theirs, expats = read(text), read_with_lxml(text), read_with_expat(text)
    assert isinstance(ours, Dtd)
    assert theirs is not None
    check_facts(ours, theirs)
    assert expats is None or list(ours.elements.values()) == list(expats.elements.values())


@pytest.mark.parametrize(("taker", "looks", "example", "why"), DIFFERENCES)
def test_differences_are_still_there(taker: str, looks: str, example: str, why: str) -> None:
    """An entry that is no longer true fails."""
    ours = read(example)
    assert isinstance(ours, Dtd) == (taker == "tamis"), why
    assert (read_with_lxml(example) is not None) == (taker == "lxml"), why
    assert re.search(looks, example if isinstance(ours, Dtd) else ours)
