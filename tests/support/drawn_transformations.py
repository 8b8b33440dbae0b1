"""Drawn documents, and drawn transformations of these, within what all processors agree on.

Values are whole numbers, so that comparing them as numbers or as strings for equality is the same
in XPath 1.0 and XQuery 3.1; ``order by`` reads attributes, of which an element has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

NAMES = ("a", "b", "c")
_ATTRIBUTES = ("x", "y")
_NUMBERS = st.integers(0, 3).map(str)


@st.composite
def documents(draw: st.DrawFn, depth: int = 5) -> str:
    """A document of elements ``a``, ``b`` and ``c`` inside each other."""
    return _element(draw, draw(st.sampled_from(NAMES)), depth)


@st.composite
def documents_below(
    draw: st.DrawFn, below: Mapping[str, Sequence[str]], root: str, depth: int = 5
) -> str:
    """A document in which elements stand in each other as is allowed."""
    return _element(draw, root, depth, below)


def _element(
    draw: st.DrawFn, name: str, depth: int, below: Mapping[str, Sequence[str]] | None = None
) -> str:
    attributes = "".join(
        f' {attribute}="{draw(_NUMBERS)}"' for attribute in _ATTRIBUTES if draw(st.booleans())
    )
    names = NAMES if below is None else below[name]
    children = draw(st.lists(st.sampled_from(names), max_size=3)) if depth and names else []
    if not children:
        return f"<{name}{attributes}>{draw(_NUMBERS)}</{name}>"
    inside = "".join(_element(draw, child, depth - 1, below) for child in children)
    return f"<{name}{attributes}>{inside}</{name}>"


_names = st.sampled_from((*NAMES, *NAMES, "*"))
_axes = st.sampled_from(("/", "/", "//"))
_operators = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
_predicates = st.one_of(
    st.just(""),
    st.just(""),
    st.builds("[@{}]".format, st.sampled_from(_ATTRIBUTES)),
    st.builds("[@{} {} {}]".format, st.sampled_from(_ATTRIBUTES), _operators, _NUMBERS),
)
_steps = st.builds("{}{}{}".format, _axes, _names, _predicates)


def _paths(least: int, most: int) -> st.SearchStrategy[str]:
    return st.lists(_steps, min_size=least, max_size=most).map("".join)


_ends = st.sampled_from(("", "", "/@x", "/text()"))
_conditions = st.one_of(
    st.builds("$s{}/@{} {} {}".format, _paths(0, 2), st.sampled_from("xy"), _operators, _NUMBERS),
    st.builds("$s{}/text() = '{}'".format, _paths(0, 2), _NUMBERS),
    st.builds("$s{} = '{}'".format, _paths(1, 2), _NUMBERS),
    st.builds("$s{}".format, _paths(1, 2)),
)
_wheres = st.recursive(
    _conditions,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner), st.builds("({} or {})".format, inner, inner)
    ),
    max_leaves=3,
)
_returned = st.one_of(
    st.builds("$s{}".format, _paths(0, 2)),
    st.builds("$s{}/text()".format, _paths(0, 2)),
    st.builds("count($s{})".format, _paths(1, 2)),
    st.builds("sum($s{}/@x)".format, _paths(0, 1)),
)
_orders = st.sampled_from(
    ("", "", "order by $s/@x ", "order by number($s/@y) descending, $s/@x empty greatest ")
)


@st.composite
def transformations(draw: st.DrawFn) -> str:
    """A transformation of the drawn documents."""
    where = draw(st.one_of(st.just(""), _wheres.map("where {} ".format)))
    items = ", ".join(draw(st.lists(_returned, min_size=1, max_size=3)))
    attribute = draw(st.one_of(st.just(""), st.builds(' k="{{ $s{}/@x }}"'.format, _paths(0, 2))))
    return (
        f"<r>{{ for $s in {draw(_paths(1, 3))} {where}{draw(_orders)}"
        f"return <m{attribute}>{{ {items} }}</m> }}</r>"
    )


@st.composite
def plain_transformations(draw: st.DrawFn, names: Sequence[str] = NAMES) -> str:
    """A transformation of the broker paper's language: no ``or``, and lists of elements."""
    steps = st.builds("{}{}{}".format, _axes, st.sampled_from((*names, *names, "*")), _predicates)
    bare = st.builds("{}{}".format, _axes, st.sampled_from(names))

    def paths(least: int, most: int) -> str:
        step = steps if draw(st.integers(0, 2)) == 0 else bare
        return "".join(draw(st.lists(step, min_size=least, max_size=most)))

    wheres: list[str] = []
    for _ in range(draw(st.integers(0, 2))):
        number = draw(_NUMBERS)
        ends = ("", f"/@x {draw(_operators)} {number}", f"/text() = '{number}'", f" = '{number}'")
        end = draw(st.sampled_from(ends))
        wheres.append(f"$s{paths(0 if '/' in end else 1, 3)}{end}")
    where = f"where {' and '.join(wheres)} " if wheres else ""
    returned = ", ".join(f"$s{paths(0, 3)}" for _ in range(draw(st.integers(1, 3))))
    return f"<r>{{ for $s in {paths(1, 3)} {where}return <m>{{ {returned} }}</m> }}</r>"
