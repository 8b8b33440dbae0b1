"""Hypothesis strategies: DTDs of all constructs, most of them well-formed, and DTDs spoiled."""

from __future__ import annotations

from hypothesis import strategies as st

_NAMES = st.sampled_from(["a", "b", "c", "p:d", "é", "x-1"])
_ATTRIBUTES = st.sampled_from(["x", "y", "p:x", "xml:lang", "xmlns:p"])
_MARKS = st.sampled_from(["", "", "", "?", "*", "+"])
_SPACES = st.sampled_from(["", "", "", " ", "\n\t"])
_VALUES = st.sampled_from(
    [
        "",
        "1",
        "x",
        " x  y ",
        "a\tb\nc",
        "&#65;",
        "&#x9;",
        "&lt;&quot;",
        "&amp;",
        "&e;",
        "&f; &f;",
        "%",
    ]
)
_PARAMETERS = {
    "declared": ["<!ELEMENT e ANY>", "<!ATTLIST a z CDATA 'z'>", "<!--x-->", ""],
    "model": ["(b)", "(b, c)*", "(b?|(c))", "EMPTY", "ANY", "(#PCDATA)", "(#PCDATA|b)*"],
    "parts": ["b|c", "b", "(b,c)+ | c", "b, c"],
    "more": ["", ", c", "| c"],
    "mixed": ["", "|b", "| b | c"],
    "attributes": ["", "z CDATA 'z'", "z ID #IMPLIED y NMTOKEN '1'"],
    "type": ["CDATA", "(x|1)", "NMTOKENS"],
    "section": ["INCLUDE", "IGNORE"],
    "value": ["", "x", "&#37;mixed;", "[%section;]", "&e;"],
}


@st.composite
def _group(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    separator = draw(st.sampled_from([",", "|"]))
    parts = draw(st.lists(inner, min_size=1, max_size=3))
    spaced = [draw(_SPACES) + part + draw(_SPACES) for part in parts]
    return f"({separator.join(spaced)}){draw(_MARKS)}"


_PARTS = st.recursive(
    st.one_of(
        st.tuples(_NAMES, _MARKS).map("".join),
        st.tuples(_NAMES, _MARKS).map("".join),
        st.tuples(_NAMES, _MARKS).map("".join),
        st.sampled_from(["%model;", "(%parts;)", "b%more;", "b %more; "]),
    ),
    lambda inner: st.one_of(inner, _group(inner)),
    max_leaves=6,
)
_MODELS = st.one_of(
    st.sampled_from(["EMPTY", "ANY", "(#PCDATA)", "( #PCDATA )*", "(#PCDATA%mixed;)*", "%model;"]),
    _group(_PARTS),
    _group(_PARTS),
    st.lists(_NAMES, min_size=1, max_size=3).map(lambda names: f"(#PCDATA | {'|'.join(names)})*"),
)


def _quoted(value: str) -> str:
    return f'"{value}"'


@st.composite
def _attribute(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return "%attributes;"
    name = draw(_ATTRIBUTES)
    type_ = draw(
        st.sampled_from(
            "CDATA CDATA ID IDREF IDREFS ENTITY ENTITIES NMTOKEN NMTOKENS (x|y) (1|-|x) %type; "
            "NOTATION·(n|m)".split()
        )
    ).replace("·", " ")
    value = _quoted(draw(_VALUES))
    presence = draw(st.sampled_from(["#REQUIRED", "#IMPLIED", f"#FIXED {value}", value, value]))
    return f"{name} {type_} {presence}"


@st.composite
def _element(draw: st.DrawFn) -> str:
    """An element, mostly with a name of its own, and its attributes."""
    name = f"{draw(_NAMES)}{draw(st.integers(0, 99))}"
    declared = f"<!ELEMENT {name} {draw(_SPACES)}{draw(_MODELS)}{draw(_SPACES)}>"
    lists = [
        f"<!ATTLIST {name} {' '.join(attributes)}>"
        for attributes in draw(st.lists(st.lists(_attribute(), max_size=3), max_size=2))
    ]
    return "".join(draw(st.permutations([declared, *lists])))


_ENTITIES = st.tuples(
    st.sampled_from(["e", "f"]),
    st.sampled_from(["", "E", " \t&#9;", "&#38;#9;", "&lt;", "%value;"]),
).map(lambda drawn: f"<!ENTITY {drawn[0]} {_quoted(drawn[1])}>")
_PARAMETER_ENTITIES = st.sampled_from(
    [f"<!ENTITY % {name} {_quoted(value)}>" for name, all in _PARAMETERS.items() for value in all]
)
_OTHERS = st.sampled_from(
    [
        "<!-- c -->",
        "<!---->",
        "<?p i?>",
        "<?p?>",
        "\n",
        "%declared;",
        "<!NOTATION n SYSTEM 'x'>",
        "<!NOTATION m PUBLIC 'x'>",
        "<!ENTITY u SYSTEM 'x' NDATA n>",
        "<!ENTITY s PUBLIC 'p' 'x'>",
        '<![IGNORE[<!ELEMENT " <![ ]]> ]]>',
    ]
)
_DECLARATIONS = st.recursive(
    st.one_of(_element(), _element(), _ENTITIES, _PARAMETER_ENTITIES, _OTHERS),
    lambda inner: st.tuples(
        st.sampled_from(["INCLUDE", "INCLUDE", "IGNORE", "%section;", " INCLUDE\n"]),
        st.lists(inner, max_size=3).map("".join),
    ).map(lambda drawn: f"<![{drawn[0]}[{drawn[1]}]]>"),
    max_leaves=8,
)


@st.composite
def dtds(draw: st.DrawFn) -> str:
    """Declarations, after those of all entities that they use."""
    first = draw(st.lists(_PARAMETER_ENTITIES.filter(lambda e: "%section" not in e), max_size=4))
    defaults = [
        f"<!ENTITY % {name} {_quoted(draw(st.sampled_from(values)))}>"
        for name, values in _PARAMETERS.items()
    ]
    rest = draw(st.lists(_DECLARATIONS, min_size=1, max_size=6))
    return "".join([*first, *defaults, "<!ENTITY f 'F'><!ENTITY e '[&f;]'>", *rest])


TOKENS = [
    *"( ) [ ] < > <! <!-- --> <? ?> <![ ]]> | , ? * + % & ; # \" ' = - : . 1".split(),
    *"<!ELEMENT <!ATTLIST <!ENTITY <!NOTATION <!DOCTYPE INCLUDE IGNORE <![INCLUDE[".split(),
    *"EMPTY ANY #PCDATA #FIXED #IMPLIED CDATA ID NOTATION SYSTEM PUBLIC NDATA".split(),
    *"a b p:a é %model; %parts; %gone; %type; &e; &gone; &lt; &#65; &#x; &#0; &#1114112;".split(),
    *["", "", "", " ", "\n", "\t", "\r", "\x00", "\x0c", "\u2028", "\ufffe", "\U0001d4b3", "×"],
    "<!ENTITY % model '%model;'>",
    "<?xml version='1.0'?>",
]


@st.composite
def spoiled(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A DTD with pieces taken out, doubled or replaced."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 2))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 4)))
        piece = draw(st.sampled_from([*TOKENS, text[start:end] * 2]))
        text = text[:start] + piece + text[end:]
    return text
