"""What a transforming subscription means: which nodes of a message, and what is made of them.

A *transformation* is a FLWR expression (Diao and Franklin, *Query Processing for High-Volume XML
Message Brokering*, VLDB 2003) within constant elements. All classes are frozen and hashable; equal
transformations are equal objects. Paths, and what is asked of them, are those of
:mod:`tamis.language.model`: the binding path begins at the document node, all others at the node
that it bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tamis.language.model import Expression, Path


@dataclass(frozen=True, slots=True)
class ReturnPath:
    """``{ $s/title }``: copies of the nodes that a path selects, in document order."""

    path: Path


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A number: ``count``, ``sum``, ``min``, ``max`` or ``avg`` of the nodes of a path."""

    function: str
    path: Path


@dataclass(frozen=True, slots=True)
class Enclosed:
    """``{ …, … }``: what is made of a binding, one item after the other."""

    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Markup:
    """A comment or a processing instruction, as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Attribute:
    """A constructed attribute; its value is constant text and the strings of what is enclosed."""

    name: str
    value: tuple[str | Enclosed, ...]


@dataclass(frozen=True, slots=True)
class Constructor:
    """A constructed element; ``name`` is as it is written, with its prefix.

    ``namespaces`` are the declarations that it has to carry, as (prefix, URI). ``content`` has
    constant text, as characters that are not escaped, and what is constructed inside.
    """

    name: str
    namespaces: tuple[tuple[str, str], ...]
    attributes: tuple[Attribute, ...]
    content: tuple[Content, ...]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """``order by $s/title descending``: the string of the first node of a path.

    With ``is_number`` it is the number. No node, or no number, is less than any, or more than any
    with ``is_greatest``.
    """

    path: Path
    is_number: bool = False
    is_descending: bool = False
    is_greatest: bool = False


@dataclass(frozen=True, slots=True)
class Flwr:
    """``for … where … order by … return …``; ``binding`` is absolute and ends with an element.

    ``paths`` are those of ``result``, each once, as they come; and then what only ``order`` reads.
    ``are_read`` tells for each of these whether the strings of its nodes are read, to write or to
    compare them; else the nodes are counted, or copied as they are.
    """

    variable: str = field(compare=False)
    binding: Path
    where: Expression | None
    order: tuple[OrderKey, ...]
    result: tuple[Item, ...]
    paths: tuple[Path, ...] = field(init=False, compare=False, repr=False)
    are_read: tuple[bool, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        leaves = dict.fromkeys([*_leaves(self.result), *((key.path, True) for key in self.order)])
        paths = tuple(dict.fromkeys(path for path, _ in leaves))
        read = {path for path, is_read in leaves if is_read}
        object.__setattr__(self, "paths", paths)
        object.__setattr__(self, "are_read", tuple(path in read for path in paths))


Item = ReturnPath | Aggregate | Constructor
Content = str | Markup | Enclosed | Constructor | Flwr


@dataclass(frozen=True, slots=True)
class Transformation:
    """A parsed subscription: a constant element, with one FLWR expression somewhere inside.

    ``namespaces`` holds the prefixes that its paths used, as sorted (prefix, URI) pairs. ``text``
    is what was parsed.
    """

    element: Constructor
    flwr: Flwr
    namespaces: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    text: str = field(default="", compare=False, repr=False)


def _leaves(
    items: Iterable[Content | Item], *, in_value: bool = False
) -> Iterator[tuple[Path, bool]]:
    """The paths in some content, and whether the strings of their nodes are read there."""
    for item in items:
        match item:
            case ReturnPath(path):
                yield path, in_value
            case Aggregate(function, path):
                yield path, function != "count"
            case Enclosed(inner):
                yield from _leaves(inner, in_value=in_value)
            case Constructor(attributes=attributes, content=content):
                for attribute in attributes:
                    yield from _leaves(attribute.value, in_value=True)
                yield from _leaves(content)
            case _:
                pass
