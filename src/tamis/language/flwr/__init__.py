r"""Subscriptions that transform: text → ``Transformation``, or a refusal.

``paths`` leaves paths and conditions to XPath's parser, and ``constructors`` reads elements.

::

    transformation = prolog element
    prolog   = ("declare" "namespace" prefix "=" string ";")*
    element  = XQuery's constructor, constant, with one { flwr } inside
    flwr     = "for" "$"name "in" path ("where" condition)? ("order by" key ("," key)*)?
               "return" item
    path     = (("doc" | "document") "(" string ")")? ("/" | "//") steps
    condition = XPath's, of paths that begin with the variable
    key      = (path | "number" "(" path ")") ("ascending" | "descending")?
               ("empty" ("greatest" | "least"))?
    item     = element, in which { item, … } is made of each binding | path | aggregate
             | "(" item ("," item)* ")"
    aggregate = ("count" | "sum" | "min" | "max" | "avg") "(" path ")"

The language is the XQuery subset of Diao and Franklin (*Query Processing for High-Volume XML
Message Brokering*, VLDB 2003), with conditions of the streamed fragment of XPath 1.0 (what
:mod:`tamis.language.xpath` reads), attributes, ``text()``, order and aggregates. Whatever else
XQuery has is refused, and said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tamis.core.errors import (
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    SubscriptionSyntaxError,
    UsageError,
)
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.entries import TRANSFORMATIONS, file_bytes, read_json
from tamis.language.flwr.model import (
    Aggregate,
    Constructor,
    Enclosed,
    Flwr,
    Item,
    OrderKey,
    ReturnPath,
    Transformation,
)
from tamis.language.flwr.paths import EXPRESSION_HINTS, EmbeddedPaths, is_of_attributes
from tamis.language.grammar import bounded_recursion, check_text

__all__ = ["Transformation", "parse_transformation", "read_transformations"]

AGGREGATES = ("count", "sum", "min", "max", "avg")


def parse_transformation(
    text: str, namespaces: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS
) -> Transformation:
    """Read one transforming subscription: a FLWR expression within constant elements.

    ``namespaces`` are those of prefixes that the text does not declare; ``""`` is of elements
    without one. Errors are those of :func:`tamis.language.xpath.parse`.

    >>> found = parse_transformation('<r>{ for $b in //book return <b>{ $b/title }</b> }</r>')
    >>> found.element.name, found.flwr.variable, len(found.flwr.paths)
    ('r', 'b', 1)
    """
    check_text(text, limits)
    with bounded_recursion():
        return _Reader(text, namespaces or {}, limits).transformation()


class _Reader(EmbeddedPaths):
    """Recursive descent over characters; paths and conditions are left to XPath's parser."""

    def __init__(self, text: str, namespaces: Mapping[str, str], limits: Limits) -> None:
        super().__init__(text, namespaces, limits)
        self.flwr: Flwr | None = None

    def transformation(self) -> Transformation:
        self.skip()
        while self.word() == "declare":
            self.declaration()
        if not self.text.startswith("<", self.at):
            is_bare = self.word() == "for"
            found = self.found() if is_bare else self.refuse_expression()
            self.fail(
                f"expected an element, found {found}",
                hint="a transformation is an element with a for inside: "
                "<result>{ for $s in //section return $s/title }</result>",
            )
        start = self.at
        element = self.element()
        self.skip()
        if self.at < len(self.text):
            self.fail(f"expected the end, found {self.found()}")
        if self.flwr is None:
            self.fail("there is no { for … return … } in the element", start)
        return Transformation(element, self.flwr, tuple(sorted(self.used.items())))

    def declaration(self) -> None:
        start = self.at
        self.words("declare")
        if self.words("default", "element", "namespace"):
            prefix = ""
        elif self.words("namespace"):
            start_of_prefix = self.at
            prefix = self.name("expected a prefix")
            if ":" in prefix or prefix in ("xml", "xmlns"):
                self.fail(f"{prefix!r} cannot be declared as a prefix", start_of_prefix)
            self.skip()
            self.expect("=")
            self.skip()
        else:
            self.unsupported(
                "of declarations only those of namespaces are supported",
                start,
                'write declare namespace prefix = "URI"; '
                'or declare default element namespace "URI";',
            )
        self.scope[prefix] = self.string("the URI of a namespace")
        self.expect(";")
        self.skip()

    def words(self, *words: str) -> bool:
        """Pass over some words and what is between them, if they are here."""
        start = self.at
        for word in words:
            if self.word() != word:
                self.at = start
                return False
            self.take(word)
        return True

    def enclosed(self) -> Enclosed | Flwr:
        """``{ … }``: the FLWR expression, or inside of it what is made of a binding."""
        if self.bound is not None:
            return Enclosed(self.braces(in_attribute=False))
        self.take("{")
        if self.word() != "for":
            found = self.refuse_expression()
            self.fail(
                f"expected 'for', found {found}",
                hint="for and all that belongs to it stand in braces: "
                "<result>{ for $s in //section return $s/title }</result>",
            )
        if self.flwr is not None:
            hint = "make it a subscription of its own"
            self.unsupported("a second for is not supported", self.at, hint)
        with self.nested():
            self.flwr = self.for_expression()
        self.skip()
        if self.text.startswith(",", self.at):
            self.fail("expected '}'", hint="put what is returned into parentheses: (…, …)")
        self.expect("}")
        return self.flwr

    def enclosed_in_value(self) -> Enclosed:
        if self.bound is None:
            self.unsupported(
                "an expression in a constant element is not supported",
                self.at,
                "write it into what is returned for each binding",
            )
        return Enclosed(self.braces(in_attribute=True))

    def braces(self, *, in_attribute: bool) -> tuple[Item, ...]:
        start = self.at
        self.at += 1
        with self.nested():
            return self.items("}", start, in_attribute=in_attribute)

    def items(self, end: str, start: int, *, in_attribute: bool) -> tuple[Item, ...]:
        found: list[Item] = []
        self.skip()
        while not self.text.startswith(end, self.at):
            if self.at >= len(self.text):
                self.fail(f"'{self.text[start]}' is not closed", start)
            found += self.item(in_attribute=in_attribute)
            self.skip()
            if self.text.startswith(",", self.at):
                self.at += 1
                self.skip()
            elif not self.text.startswith(end, self.at):
                self.fail(f"expected ',' or '{end}', found {self.found()}")
        self.at += 1
        return tuple(found)

    def item(self, *, in_attribute: bool = False) -> tuple[Item, ...]:
        start = self.at
        character = self.text[start : start + 1]
        if character == "(":
            self.at += 1
            with self.nested():
                return self.items(")", start, in_attribute=in_attribute)
        if character == "<":
            if in_attribute:
                self.unsupported("an element in an attribute is not supported", start)
            return (self.element(),)
        word = self.word()
        if word in AGGREGATES and self.is_call(word):
            self.enter_call(word)
            path = self.relative_path()
            self.leave_call()
            return (Aggregate(word, path),)
        if character != "$":
            if word in ("string", "data") and self.is_call(word):
                hint = self.instead_of_string(word, in_attribute=in_attribute)
                self.unsupported(f"{word}() is not supported here", self.at, hint)
            found = self.refuse_expression()
            self.fail(
                f"expected an element, a path of ${self.bound} or an aggregate, found {found}"
            )
        return (ReturnPath(self.relative_path()),)

    def for_expression(self) -> Flwr:
        self.take("for")
        variable = self.variable()
        self.skip()
        if self.word() in ("at", "as", "allowing"):
            self.refuse_word("neither a position nor a type can be had of a binding")
        self.keyword("in")
        binding = self.binding_path()
        self.skip()
        if self.text.startswith(",", self.at):
            self.unsupported("a second variable is not supported", self.at)
        self.bound = variable
        where = None
        if self.word() in ("let", "for", "group", "count"):
            self.refuse_word(EXPRESSION_HINTS.get(self.word()))
        if self.word() == "where":
            self.at += len("where")
            where = self.condition()
            self.skip()
        order = tuple(self.order_keys())
        self.skip()
        if self.word() in ("let", "for", "group", "count", "where"):
            self.refuse_word(EXPRESSION_HINTS.get(self.word()))
        self.keyword("return")
        self.skip()
        result = self.item()
        self.bound = None
        self.check_order_of_attributes(result)
        return Flwr(variable, binding, where, order, result)

    def check_order_of_attributes(self, items: tuple[Item, ...]) -> None:
        """Refuse attributes that have no element to be in, or come behind its content."""
        for item in items:
            if isinstance(item, ReturnPath) and is_of_attributes(item.path):
                hint = "put them into an element: <name>{ … }</name>"
                self.unsupported("attributes have no element here", self.at - 1, hint)
            if isinstance(item, Constructor):
                self.check_content(item)

    def check_content(self, element: Constructor) -> None:
        has_content = False
        for part in element.content:
            for item in part.items if isinstance(part, Enclosed) else (part,):
                if isinstance(item, Constructor):
                    self.check_content(item)
                if not (isinstance(item, ReturnPath) and is_of_attributes(item.path)):
                    has_content = True
                elif has_content:
                    message = f"attributes behind the content of <{element.name}> are not supported"
                    self.unsupported(message, self.at - 1, "put them before it")

    def variable(self) -> str:
        if not self.text.startswith("$", self.at):
            self.fail(f"expected a variable, found {self.found()}")
        self.at += 1
        self.skip_blank()
        return self.name("expected the name of a variable")

    def order_keys(self) -> Iterator[OrderKey]:
        if self.word() == "stable":  # it always is
            self.take("stable")
            if self.word() != "order":
                self.fail(f"expected 'order', found {self.found()}")
        if self.word() != "order":
            return
        self.keyword("order")
        self.keyword("by")
        while True:
            yield self.order_key()
            self.skip()
            if not self.text.startswith(",", self.at):
                return
            self.at += 1

    def order_key(self) -> OrderKey:
        self.skip()
        is_number = self.word() == "number" and self.is_call("number")
        if is_number:
            self.enter_call("number")
        path = self.relative_path()
        if is_number:
            self.leave_call()
        self.skip()
        is_descending = self.word() == "descending"
        if self.word() in ("ascending", "descending"):
            self.take(self.word())
        is_greatest = False
        if self.word() == "empty":
            self.take("empty")
            is_greatest = self.word() == "greatest"
            self.keyword("greatest" if is_greatest else "least")
        if self.word() == "collation":
            self.refuse_word("strings are ordered by their characters")
        return OrderKey(path, is_number, is_descending, is_greatest)


# -- files -----------------------------------------------------------------------------------------


class Refused(NamedTuple):
    """A subscription that cannot be used, and the file that it is in."""

    file: Path
    error: SubscriptionError


class TransformationSet(NamedTuple):
    """Subscriptions that were read, in their order, and those that cannot be used."""

    transformations: Mapping[SubscriptionId, Transformation]
    refused: tuple[Refused, ...]


_Source = tuple[Path, int | None, bytes]
"""A file, a line of it, and what is read: the line, or if that is None the whole file."""


def read_transformations(
    paths: Iterable[str | Path],
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> TransformationSet:
    """Read transforming subscriptions from files; ``namespaces`` as for one of them.

    Paths are folders, of which each ``ID.xq`` (or ``ID.xquery``) is one, sorted by name; such
    files; or ``*.ndjson``, with an object ``{"id": …, "query": "…"}`` a line.
    """
    found: dict[SubscriptionId, Transformation] = {}
    refused: list[Refused] = []
    for file, line, data in chain.from_iterable(_sources(Path(path)) for path in paths):
        id: SubscriptionId | None = None if line else file.stem
        try:
            if line:
                id, text, _ = read_json(data, "query")
            else:
                text = _text(data)
            assert id is not None
            if id in found:
                raise SubscriptionIdError("the id is used twice: ids must be unique")
            found[id] = parse_transformation(text, namespaces, limits)
        except SubscriptionError as error:
            refused.append(Refused(file, error.located(id, line)))
    return TransformationSet(found, tuple(refused))


def _sources(path: Path) -> Iterator[_Source]:
    if path.is_dir():
        try:
            files = [file for file in path.iterdir() if file.suffix in TRANSFORMATIONS]
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        files = sorted(file for file in files if not file.is_dir())
        if not files:
            raise UsageError(f"there is no *.xq in {path}: each of them is a subscription")
        yield from ((file, None, file_bytes(file)) for file in files)
        return
    data = file_bytes(path)
    if path.suffix in ("", *TRANSFORMATIONS):
        yield path, None, data
    elif path.suffix != ".ndjson":
        raise UsageError(f"{path}: transformations are in *.xq, or in *.ndjson")
    else:
        lines = enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1)
        yield from ((path, number, line) for number, line in lines if line.strip())


def _text(data: bytes) -> str:
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise SubscriptionSyntaxError(f"the file is not UTF-8: {error}") from None
