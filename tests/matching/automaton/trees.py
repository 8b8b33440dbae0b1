"""Random documents and paths of few names: where trees are deep and alike, most can go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

NAMESPACES = {"p": "urn:p", "q": "urn:q"}
_DECLARED = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
_NAMES = ("a", "b", "p:a", "c", "q:b", "d")
_ATTRIBUTES = ("x", "y", "p:x")
_LONG = "123456789012345678901"
_VALUES = ("1", "2", "10", "-1.5", " 1 ", "1.50", "x", "xy", "", "x y", "1e3", _LONG)
_BESIDE = ("<!--c-->", "<?p d?>")


@dataclass(frozen=True)
class Shape:
    """What documents and paths look like.

    Attributes:
        names: how many there are.
        depth: levels of elements, at most.
        children: of an element, at most.
        leaves: the share of children that are no elements.
        attributes: of an element, at most.
        predicates: the chance of each of two predicates of a step.
        steps: of a path, at most.
        positions: the chance that a predicate is a position.
        values: the chance that a predicate reads values.
    """

    names: int
    depth: int
    children: int
    leaves: float
    attributes: int
    predicates: float
    steps: int
    positions: float
    values: float

    @classmethod
    def drawn(cls, draw: Random) -> Shape:
        """A shape with small documents."""
        depth, children = draw.choice([(3, 6), (5, 4), (8, 3), (12, 2), (30, 2)])
        return cls(
            names=draw.randint(1, len(_NAMES)),
            depth=depth,
            children=children,
            leaves=draw.choice([0, 0, 0.2, 0.5]),
            attributes=draw.choice([0, 0, 1, 3]),
            predicates=draw.choice([0, 0.2, 0.4]),
            steps=draw.choice([2, 3, 5]),
            positions=draw.choice([0, 0.1, 0.4]),
            values=draw.choice([0, 0, 0.3, 0.7]),
        )


def document(draw: Random, shape: Shape) -> str:
    """A document; its size is bounded, as well as its depth."""
    left = [60]

    def element(depth: int) -> str:
        left[0] -= 1
        name = draw.choice(_NAMES[: shape.names])
        written = name + _DECLARED * (depth == 1)
        for attribute in _ATTRIBUTES[: draw.randint(0, shape.attributes)]:
            written += f' {attribute}="{draw.choice(_VALUES) if shape.values else 1}"'
        if depth > 1 and draw.random() < 0.02:
            written += draw.choice([' xmlns="urn:p"', ' xmlns:p="urn:q"'])
        content = ""
        for _ in range(draw.randint(depth < 4, shape.children)):
            if draw.random() < shape.leaves:
                texts = [value for value in _VALUES if value] if shape.values else ["1", " "]
                content += draw.choice([draw.choice(texts), "<![CDATA[z]]>", *_BESIDE])
            elif depth < shape.depth and left[0] > 0:
                content += element(depth + 1)
        return f"<{written}>{content}</{name}>"

    def beside() -> str:
        return draw.choice(_BESIDE) * (draw.random() < shape.leaves / 2)

    return f"{beside()}{element(1)}{beside()}"


def expression(draw: Random, shape: Shape) -> str:
    """A subscription; not every one is supported."""
    kind = draw.random()
    if kind < 0.7:
        return _absolute(draw, shape)
    if kind < 0.8:
        return f"{_absolute(draw, shape)} | {_absolute(draw, shape)}"
    return _predicate(draw, shape, 0)


def _absolute(draw: Random, shape: Shape) -> str:
    return draw.choice(["/", "//", "//", ".//", ""]) + _steps(draw, shape, 0)


def _steps(draw: Random, shape: Shape, nesting: int) -> str:
    text = ""
    for number in range(draw.randint(1, max(1, shape.steps - nesting))):
        if number:
            text += draw.choice(["/", "/", "//"])
        if shape.attributes and draw.random() < 0.1:
            return text + "@" + draw.choice([*_ATTRIBUTES, "*", "p:*", "node()"])
        axis = ""
        if draw.random() < 0.2:
            axis = draw.choice(
                ["child::", "descendant::", "descendant-or-self::", "self::", "self::"]
            )
        text += axis + _test(draw, shape)
        for _ in range(2):
            if draw.random() < shape.predicates and nesting < 4:
                is_child = axis in ("", "child::")
                text += f"[{_predicate(draw, shape, nesting + 1, is_child)}]"
    return text


def _test(draw: Random, shape: Shape) -> str:
    tests = ["*", "p:*", "node()", "text()"] if shape.leaves else ["*", "*", "p:*"]
    names = _NAMES[: shape.names]
    return draw.choice(tests) if draw.random() < 0.25 else draw.choice(names)


def _predicate(draw: Random, shape: Shape, nesting: int, is_step: bool = False) -> str:
    if is_step and draw.random() < shape.positions:
        return str(draw.randint(1, 3))
    inner = nesting + 1
    if draw.random() < shape.values:
        return _comparison(draw, shape, inner)
    kind = draw.random()
    if kind < 0.5 or nesting > 4:
        return draw.choice(["", "", "", ".//"]) + _steps(draw, shape, inner)
    if kind < 0.65:
        return f"not({_predicate(draw, shape, inner)})"
    if kind < 0.85:
        word = draw.choice(["and", "or"])
        several = [_predicate(draw, shape, inner) for _ in range(draw.randint(2, 3))]
        return f"({f' {word} '.join(several)})"
    tests = [_test(draw, shape) for _ in range(draw.randint(1, 2))]
    if shape.attributes and draw.random() < 0.2:
        tests.append("@" + draw.choice(["x", "*"]))
    elif draw.random() < shape.predicates:
        tests[-1] += f"[{_predicate(draw, shape, inner)}]"
    operator = draw.choice(["=", "!=", "<", "<=", ">", ">="])
    number = draw.choice(["0", "1", "1", "2", "3", "1.5", "-1"])
    return f"count({'/'.join(tests)}) {operator} {number}"


def _comparison(draw: Random, shape: Shape, nesting: int) -> str:
    """A predicate that reads a string value."""
    nodes = draw.choice([".", ".", "text()", "@x", "@*", "", "", ".//", "/"])
    if nodes in ("", ".//"):
        nodes += _steps(draw, shape, nesting)
    elif nodes == "/":
        nodes = "/".join(_test(draw, shape) for _ in range(draw.randint(1, 3)))
    text, operator = draw.choice(_VALUES), draw.choice(["=", "!=", "<", "<=", ">", ">="])
    kind = draw.random()
    string = draw.choice([nodes, f"normalize-space({nodes})"])
    if kind < 0.1:
        return f"string-length({string}) {operator} {draw.randint(0, 3)}"
    if kind < 0.2:
        return f"normalize-space({nodes}) {operator} {draw.choice(['1', '-1.5', _LONG])}"
    if kind < 0.3:
        return f"normalize-space({nodes}) {draw.choice(['=', '!='])} '{text.strip()}'"
    nodes = string if kind < 0.45 else nodes
    if kind < 0.5:
        function = draw.choice(["starts-with", "contains"])
        return f"{function}({nodes}, '{text[: draw.randint(0, 3)]}')"
    if kind < 0.6:
        return f"{nodes} {draw.choice(['=', '!='])} '{text}'"
    return f"{nodes} {operator} {draw.choice(['1', '2', '1.5', '-1.5', '10', _LONG])}"
