"""Hypothesis strategies: small documents and DTDs, and subscriptions that may match them."""

from __future__ import annotations

from hypothesis import strategies as st

NAMESPACES = {"p": "urn:p", "q": "urn:q"}

_NAMES = st.sampled_from(["a", "b", "c", "p:a", "q:b"])
_ATTRIBUTES = st.sampled_from(["x", "y", "p:x", "xml:lang"])
_STRINGS = st.sampled_from(["", "1", "2", "10", "-1.5", " 1 ", "ab", "a b", " a  b ", "é", "]]"])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_LEAVES = st.one_of(
    _STRINGS.map(_escaped),
    _STRINGS.filter(lambda text: text and "]]" not in text).map(
        lambda text: f"<![CDATA[{text}]]>"  # empty ones are a fault of lxml's: see oracles.py
    ),
    st.sampled_from(["&#49;", "&amp;", "<!--1-->", "<?a b?>", "<?p?>", "\n"]),
)


@st.composite
def _element(draw: st.DrawFn, content: st.SearchStrategy[list[str]]) -> str:
    name = draw(_NAMES)
    attributes = draw(st.dictionaries(_ATTRIBUTES, _STRINGS, max_size=2))
    written = "".join(f' {key}="{_escaped(value)}"' for key, value in attributes.items())
    # Now and then a prefix is bound anew, or a default namespace declared.
    written += draw(st.sampled_from([""] * 8 + [' xmlns="urn:p"', ' xmlns:p="urn:q"']))
    inner = "".join(draw(content))
    return f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>"


_CONTENT = st.recursive(
    _LEAVES, lambda inner: st.one_of(inner, _element(st.lists(inner, max_size=4))), max_leaves=25
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A well-formed document with the prefixes of ``NAMESPACES`` declared at its root."""
    content = "".join(draw(st.lists(_CONTENT, max_size=5)))
    root = draw(_NAMES)
    declared = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
    prolog = draw(st.sampled_from([""] * 6 + ["<!--c-->", "<?a b?><!--c-->"]))
    epilog = draw(st.sampled_from([""] * 6 + ["<!--c-->"]))
    return f"{prolog}<{root}{declared}>{content}</{root}>{epilog}"


_LITERALS = st.one_of(
    _STRINGS.map(lambda text: f"'{text}'"), st.sampled_from(["0", "1", "2", "-1.5", "10"])
)
_TEXT_LITERALS = st.sampled_from(["''", "'a'", "'1'", "' '", "'b'", "'p'", "'é'"])
_OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_TESTS = st.one_of(
    _NAMES,
    st.sampled_from(["*", "p:*", "node()", "text()", "a", "b", "c"]),
    st.sampled_from(["*:a", "*:b", "Q{urn:q}b", "Q{}a", "Q{urn:p}*", "Q{}*"]),
)
_ATTRIBUTE_TESTS = st.one_of(
    _ATTRIBUTES, st.sampled_from(["*", "p:*", "node()", "*:x", "Q{urn:p}x", "Q{}*"])
)
_AXES = st.sampled_from(
    ["", "", "", "", "child::", "descendant::", "descendant-or-self::", "self::"]
)


@st.composite
def _steps(
    draw: st.DrawFn, predicates: st.SearchStrategy[str], separators: list[str], most: int
) -> str:
    """Steps of any axis; an attribute step comes last, mostly."""
    text = ""
    for index in range(draw(st.integers(1, most))):
        if index:
            text += draw(st.sampled_from(separators))
        kind = draw(st.integers(0, 9))
        if kind == 0:
            text += "."
        elif kind == 1:
            text += "@" + draw(_ATTRIBUTE_TESTS)
        else:
            axis = draw(_AXES)
            text += axis + draw(_TESTS)
            for predicate in draw(st.lists(predicates, max_size=2)):
                if not predicate.isdigit() or axis in ("", "child::"):
                    text += f"[{predicate}]"
    return text


@st.composite
def _child_steps(draw: st.DrawFn, predicates: st.SearchStrategy[str]) -> str:
    """A path that count() takes."""
    steps = draw(st.lists(_TESTS, max_size=2))
    last = draw(st.one_of(_TESTS, _ATTRIBUTE_TESTS.map(lambda test: "@" + test)))
    predicate = draw(st.one_of(st.just(""), predicates.map(lambda text: f"[{text}]")))
    if last.startswith("@") and predicate[1:-1].isdigit():
        predicate = ""
    return "/".join([*steps, last + predicate])


@st.composite
def _compared(draw: st.DrawFn, predicates: st.SearchStrategy[str]) -> str:
    """A comparison, or a function of a string."""
    path = draw(st.one_of(st.just("."), _steps(predicates, ["/", "//"], 2)))
    text = draw(
        st.sampled_from(
            ["{}", "normalize-space({})", "name({})", "local-name({})", "string-length({})"]
        )
    ).format(path)
    kind = draw(st.integers(0, 5))
    if kind == 0 and "string-length" not in text:
        return f"contains({text}, {draw(_TEXT_LITERALS)})"
    if kind == 1 and "string-length" not in text:
        return f"starts-with({text}, {draw(_TEXT_LITERALS)})"
    if kind == 2:
        text = f"count({draw(_child_steps(predicates))})"
    operator, literal = draw(_OPERATORS), draw(_LITERALS)
    if draw(st.booleans()):
        return f"{text} {operator} {literal}"
    return f"{literal} {operator} {text}"


def _boolean(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Predicates around predicates."""
    return st.one_of(
        _steps(inner, ["/", "//"], 3),
        _compared(inner),
        inner.map(lambda text: f"not({text})"),
        st.tuples(inner, inner).map(" and ".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} or {pair[1]})"),
    )


PREDICATES = st.recursive(
    st.one_of(
        st.sampled_from(["1", "2", "3", "true()", "false()", "b", "@x", ".", "text()"]),
        st.tuples(st.sampled_from(["@x", "b", ".", "text()"]), _OPERATORS, _LITERALS).map(" ".join),
    ),
    _boolean,
    max_leaves=4,
)


@st.composite
def subscriptions(draw: st.DrawFn) -> str:
    """Any expression of the supported fragment, over the names of :func:`documents`."""
    kind = draw(st.integers(0, 9))
    path = draw(st.sampled_from(["/", "//", "", ".//"])) + draw(
        _steps(PREDICATES, ["/", "/", "//"], 4)
    )
    if kind < 7:
        return path
    if kind == 7:
        return f"{path} | //{draw(_steps(PREDICATES, ['/', '//'], 2))}"
    # A bare number at the top would be a constant: only inside brackets is it a position.
    return draw(PREDICATES.filter(lambda text: not text.isdigit()))


# -- DTDs ------------------------------------------------------------------------------------------

_ELEMENTS = "abcdef"
_OCCURS = st.sampled_from(["", "", "?", "*", "+"])


@st.composite
def _groups(draw: st.DrawFn, names: tuple[str, ...] | None = None) -> str:
    """A content model. Each name is in it once: so it is deterministic, as XML wants it."""
    if names is None:
        names = tuple(
            draw(st.lists(st.sampled_from(_ELEMENTS), min_size=1, max_size=5, unique=True))
        )
    parts = []
    while names:
        size = draw(st.integers(1, len(names)))
        inside, names = names[:size], names[size:]
        if size > 1 and (parts or names):
            parts.append(draw(_groups(inside)))
        else:
            parts += [name + draw(_OCCURS) for name in inside]
    return f"({draw(st.sampled_from([', ', ' | '])).join(parts)}){draw(_OCCURS)}"


_CONTENT_MODELS = st.one_of(
    _groups(),
    st.lists(st.sampled_from(_ELEMENTS), max_size=3, unique=True).map(
        lambda names: f"(#PCDATA{''.join(' | ' + name for name in names)}){'*' if names else ''}"
    ),
    st.sampled_from(["(#PCDATA)", "EMPTY", "ANY"]),
)
_ATTRIBUTE_LISTS = st.lists(
    st.sampled_from(
        ["x CDATA #IMPLIED", "y (1 | 2 | ab) #REQUIRED", "z NMTOKEN '3'", "i ID #IMPLIED",
         "r IDREF #IMPLIED", "xml:lang CDATA #IMPLIED"]
    ),
    max_size=3,
    unique=True,
)  # fmt: skip


@st.composite
def dtds(draw: st.DrawFn) -> str:
    """Declarations of the elements a to f; often, but not always, there are valid documents."""
    declared = []
    for name in _ELEMENTS:
        declared.append(f"<!ELEMENT {name} {draw(_CONTENT_MODELS)}>")
        attributes = draw(_ATTRIBUTE_LISTS)
        if attributes:
            declared.append(f"<!ATTLIST {name} {' '.join(attributes)}>")
    return "\n".join(declared)
