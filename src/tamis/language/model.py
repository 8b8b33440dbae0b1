"""What a subscription means: the abstract syntax of the streamed fragment of XPath 1.0.

All classes are frozen and hashable; equal queries are equal objects. ``Exists``, ``Compare`` and
the rest follow XPath 1.0's semantics, with the document node as the context of the whole:

* a *path* selects a set of nodes; as a boolean it asks whether there is one;
* ``Compare`` with ``Nodes`` is existential: some selected node satisfies the comparison;
* string functions take the *first* selected node in document order, and ``""`` where there is none.

>>> from tamis.language.xpath import parse
>>> parse("//item[@id = 'x']").expression.paths[0].steps[-1].predicates
(Compare(operator='=', value=Nodes(paths=(Path(absolute=False, steps=(Step(axis=<Axis.ATTRIBUTE: \
'attribute'>, test=NameTest(namespace='', local='id'), predicates=()),)),)), literal='x'),)
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Axis(enum.Enum):
    """The forward axes."""

    CHILD = "child"
    DESCENDANT = "descendant"
    DESCENDANT_OR_SELF = "descendant-or-self"
    SELF = "self"
    ATTRIBUTE = "attribute"


class KindTest(enum.Enum):
    """Node tests that are not about names."""

    NODE = "node()"
    TEXT = "text()"


@dataclass(frozen=True, slots=True)
class NameTest:
    """A test of the expanded name of an element, or of an attribute on the attribute axis.

    ``namespace`` is a URI, ``""`` for none, or None for any; ``local`` is None for any. ``prefix``
    is how the test was written, for printing: a prefix, ``Q{URI}`` or None.
    """

    namespace: str | None
    local: str | None
    prefix: str | None = field(default=None, compare=False, repr=False)

    def passes(self, namespace: str, local: str) -> bool:
        """Whether an expanded name passes."""
        return self.namespace in (None, namespace) and self.local in (None, local)


NodeTest = NameTest | KindTest


@dataclass(frozen=True, slots=True)
class Position:
    """``[n]``: the n-th (from 1) of the nodes left on a child step, counted per parent."""

    number: int


@dataclass(frozen=True, slots=True)
class Step:
    """One step; its predicates apply one after the other.

    The analyzer reads ``@text()``, which selects nothing, as ``@node()[false()]``.
    """

    axis: Axis
    test: NodeTest
    predicates: tuple[Predicate, ...] = ()


DESCEND = Step(Axis.DESCENDANT_OR_SELF, KindTest.NODE)
"""The step in the middle of ``//``."""
HERE = Step(Axis.SELF, KindTest.NODE)
"""The step ``.``."""


def without_here(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps, without those that are a plain ``.``."""
    return tuple(step for step in steps if step != HERE)


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the document node (``absolute``), or from the context node."""

    absolute: bool
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one path, or of a union of paths."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class StringOf:
    """The string value of the first node of a path."""

    path: Path


@dataclass(frozen=True, slots=True)
class NameOf:
    """The qualified name (as written in the document), or the local name, of the first node."""

    path: Path
    local: bool


@dataclass(frozen=True, slots=True)
class NormalizeSpace:
    """A string without white space at its ends, and with single spaces inside."""

    text: StringFunction


StringFunction = StringOf | NameOf | NormalizeSpace


@dataclass(frozen=True, slots=True)
class Count:
    """The number of distinct nodes of a path of child and attribute steps."""

    path: Path


@dataclass(frozen=True, slots=True)
class StringLength:
    """The number of characters of a string."""

    text: StringFunction


Value = Nodes | StringFunction | Count | StringLength


@dataclass(frozen=True, slots=True)
class Exists:
    """True where a path, or one of a union, selects a node."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """``value operator literal`` with ``= != < <= > >=``.

    A string literal always means equality of strings, ``=`` or ``!=``; a number is not NaN.
    """

    operator: str
    value: Value
    literal: str | float


@dataclass(frozen=True, slots=True)
class Contains:
    """``contains(text, literal)``."""

    text: StringFunction
    literal: str


@dataclass(frozen=True, slots=True)
class StartsWith:
    """``starts-with(text, literal)``."""

    text: StringFunction
    literal: str


@dataclass(frozen=True, slots=True)
class Constant:
    """``true()`` or ``false()``."""

    value: bool


@dataclass(frozen=True, slots=True)
class Not:
    """``not(operand)``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class And:
    """All operands are true; none of them is itself an ``And``."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Some operand is true; none of them is itself an ``Or``."""

    operands: tuple[Expression, ...]


Expression = Exists | Compare | Contains | StartsWith | Constant | Not | And | Or
Predicate = Position | Expression


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed subscription: true or false of a document.

    ``namespaces`` holds the declarations that the text used, as sorted (prefix, URI) pairs.
    ``is_truth`` tells ``boolean(path)`` from ``path``: only a path selects nodes. ``unstreamed`` is
    None, or the text of an expression outside the streamed fragment, absolute, for lxml. Then
    ``expression`` says nothing, and ``namespaces`` are all that are declared.
    """

    expression: Expression
    namespaces: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)
    is_truth: bool = field(default=False, repr=False)
    unstreamed: str | None = field(default=None, repr=False)

    @property
    def selects(self) -> bool:
        """Whether it selects nodes, as a path or a union does: all else is a boolean."""
        return isinstance(self.expression, Exists) and not self.is_truth
