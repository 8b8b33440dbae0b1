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
from pathlib import Path as FilePath
from typing import NamedTuple

from tamis.core.errors import (
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    SubscriptionSyntaxError,
    UsageError,
)
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.entries import BOM, TRANSFORMATIONS, file_bytes, read_json
from tamis.language.flwr import model
from tamis.language.flwr.model import Constructor, Transformation
from tamis.language.flwr.paths import EXPRESSION_HINTS, EmbeddedPaths, is_of_attributes
from tamis.language.grammar import bounded_recursion, check_text
from tamis.language.model import Path

__all__ = ["Transformation", "parse_transformation", "read_transformations"]

AGGREGATES = ("count", "sum", "min", "max", "avg")
_EXAMPLE = "<result>{ for $s in //section return $s/title }</result>"
_CLAUSES = ("let", "for", "group", "count")


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
        self.flwr: model.Flwr | None = None

    def transformation(self) -> Transformation:
        self.skip()
        while self.word() == "declare":
            self.declaration()
        if not self.comes("<"):
            found = self.found() if self.word() == "for" else self.refuse_expression()
            hint = f"a transformation is an element with a for inside: {_EXAMPLE}"
            self.fail(f"expected an element, found {found}", hint=hint)
        start = self.at
        element = self.element()
        self.skip()
        if self.at < len(self.text):
            self.fail(f"expected the end, found {self.found()}")
        if self.flwr is None:
            self.fail("there is no { for … return … } in the element", start)
        used = tuple(sorted(self.used.items()))
        return Transformation(element, self.flwr, used, self.text)

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
            message = "of declarations only those of namespaces are supported"
            hint = 'write declare namespace prefix = "URI"; '
            hint += 'or declare default element namespace "URI";'
            self.unsupported(message, start, hint)
        self.scope[prefix] = self.string("the URI of a namespace")
        self.expect(";")
        self.skip()

    def words(self, *words: str) -> bool:
        """Pass over some words, if they are here."""
        start = self.at
        for word in words:
            if self.word() != word:
                self.at = start
                return False
            self.take(word)
        return True

    def enclosed(self) -> model.Enclosed | model.Flwr:
        """``{ … }``: the FLWR expression, or inside of it what is made of a binding."""
        if self.bound is not None:
            return model.Enclosed(self.braces(in_attribute=False))
        self.take("{")
        if self.word() != "for":
            hint = f"for and all that belongs to it stand in braces: {_EXAMPLE}"
            self.fail(f"expected 'for', found {self.refuse_expression()}", hint=hint)
        if self.flwr is not None:
            hint = "make it a subscription of its own"
            self.unsupported("a second for is not supported", self.at, hint)
        with self.nested():
            self.flwr = self.for_expression()
        self.skip()
        if self.comes(","):
            self.fail("expected '}'", hint="put what is returned into parentheses: (…, …)")
        self.expect("}")
        return self.flwr

    def enclosed_in_value(self) -> model.Enclosed:
        if self.bound is None:
            message = "an expression in a constant element is not supported"
            hint = "write it into what is returned for each binding"
            self.unsupported(message, self.at, hint)
        return model.Enclosed(self.braces(in_attribute=True))

    def braces(self, *, in_attribute: bool) -> tuple[model.Item, ...]:
        start = self.at
        self.at += 1
        with self.nested():
            return self.items("}", start, in_attribute=in_attribute)

    def items(self, end: str, start: int, *, in_attribute: bool) -> tuple[model.Item, ...]:
        found: list[model.Item] = []
        self.skip()
        while not self.takes(end):
            if self.at >= len(self.text):
                self.fail(f"'{self.text[start]}' is not closed", start)
            found += self.item(in_attribute=in_attribute)
            self.skip()
            if self.takes(","):
                self.skip()
            elif not self.comes(end):
                self.fail(f"expected ',' or '{end}', found {self.found()}")
        return tuple(found)

    def item(self, *, in_attribute: bool = False) -> tuple[model.Item, ...]:
        start = self.at
        if self.takes("("):
            with self.nested():
                return self.items(")", start, in_attribute=in_attribute)
        if self.comes("<"):
            if in_attribute:
                self.unsupported("an element in an attribute is not supported", start)
            return (self.element(),)
        word = self.word()
        if word in AGGREGATES and self.is_call(word):
            return (model.Aggregate(word, self.path_in_call(word)),)
        if not self.comes("$"):
            if word in ("string", "data") and self.is_call(word):
                hint = self.instead_of_string(word, in_attribute=in_attribute)
                self.unsupported(f"{word}() is not supported here", self.at, hint)
            wanted = f"an element, a path of ${self.bound} or an aggregate"
            self.fail(f"expected {wanted}, found {self.refuse_expression()}")
        return (model.ReturnPath(self.relative_path()),)

    def for_expression(self) -> model.Flwr:
        self.take("for")
        variable = self.variable()
        self.skip()
        if self.word() in ("at", "as", "allowing"):
            self.refuse_word("neither a position nor a type can be had of a binding")
        self.keyword("in")
        binding = self.binding_path()
        self.skip()
        if self.comes(","):
            self.unsupported("a second variable is not supported", self.at)
        self.bound = variable
        where = None
        self.refuse_clauses(*_CLAUSES)
        if self.word() == "where":
            self.at += len("where")
            where = self.condition()
            self.skip()
        order = tuple(self.order_keys())
        self.skip()
        self.refuse_clauses(*_CLAUSES, "where")
        self.keyword("return")
        self.skip()
        result = self.item()
        self.bound = None
        self.check_order_of_attributes(result)
        return model.Flwr(variable, binding, where, order, result)

    def refuse_clauses(self, *words: str) -> None:
        if self.word() in words:
            self.refuse_word(EXPRESSION_HINTS.get(self.word()))

    def check_order_of_attributes(self, items: tuple[model.Item, ...]) -> None:
        """Refuse attributes that have no element to be in, or come behind its content."""
        for item in items:
            if isinstance(item, model.ReturnPath) and is_of_attributes(item.path):
                hint = "put them into an element: <name>{ … }</name>"
                self.unsupported("attributes have no element here", self.at - 1, hint)
            if isinstance(item, Constructor):
                self.check_content(item)

    def check_content(self, element: Constructor) -> None:
        has_content = False
        for part in element.content:
            for item in part.items if isinstance(part, model.Enclosed) else (part,):
                if isinstance(item, Constructor):
                    self.check_content(item)
                if not (isinstance(item, model.ReturnPath) and is_of_attributes(item.path)):
                    has_content = True
                elif has_content:
                    message = f"attributes behind the content of <{element.name}> are not supported"
                    self.unsupported(message, self.at - 1, "put them before it")

    def path_in_call(self, function: str) -> Path:
        self.enter_call(function)
        path = self.relative_path()
        self.leave_call()
        return path

    def variable(self) -> str:
        if not self.takes("$"):
            self.fail(f"expected a variable, found {self.found()}")
        self.skip_blank()
        return self.name("expected the name of a variable")

    def order_keys(self) -> Iterator[model.OrderKey]:
        is_stable = self.words("stable")  # it always is
        if self.word() != "order" and not is_stable:
            return
        self.keyword("order")
        self.keyword("by")
        while True:
            yield self.order_key()
            self.skip()
            if not self.takes(","):
                return

    def order_key(self) -> model.OrderKey:
        self.skip()
        is_number = self.word() == "number" and self.is_call("number")
        path = self.path_in_call("number") if is_number else self.relative_path()
        self.skip()
        is_descending = self.words("descending")
        if not is_descending:
            self.words("ascending")
        is_greatest = False
        if self.words("empty"):
            is_greatest = self.word() == "greatest"
            self.keyword("greatest" if is_greatest else "least")
        if self.word() == "collation":
            self.refuse_word("strings are ordered by their characters")
        return model.OrderKey(path, is_number, is_descending, is_greatest)


# -- files -----------------------------------------------------------------------------------------


class Refused(NamedTuple):
    """A subscription that cannot be used, and the file that it is in."""

    file: FilePath
    error: SubscriptionError


class TransformationSet(NamedTuple):
    """Subscriptions that were read, in their order, and those that cannot be used."""

    transformations: Mapping[SubscriptionId, Transformation]
    refused: tuple[Refused, ...]


class _Entry(NamedTuple):
    id: SubscriptionId | None
    text: str | SubscriptionError
    line: int | None = None


def read_transformations(
    paths: Iterable[str | FilePath],
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> TransformationSet:
    """Read the subscriptions of folders, of files, or of NDJSON.

    Args:
        paths: folders, of which each ``ID.xq`` (or ``ID.xquery``) is one, sorted by name; such
            files; or ``*.ndjson``, with an object ``{"id": …, "query": "…"}`` a line.
        namespaces: prefix → URI, of prefixes that the texts do not declare.
    """
    found: dict[SubscriptionId, Transformation] = {}
    refused: list[Refused] = []
    for file in chain.from_iterable(_files(FilePath(path)) for path in paths):
        for id, text, line in _entries(file):
            try:
                if isinstance(text, SubscriptionError):
                    raise text
                assert id is not None
                if id in found:
                    raise SubscriptionIdError("the id is used twice: ids must be unique")
                found[id] = parse_transformation(text, namespaces, limits)
            except SubscriptionError as error:
                refused.append(Refused(file, error.located(id, line)))
    return TransformationSet(found, tuple(refused))


def _files(path: FilePath) -> list[FilePath]:
    if not path.is_dir():
        return [path]
    try:
        files = [file for file in path.iterdir() if file.suffix in TRANSFORMATIONS]
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    files = sorted(file for file in files if not file.is_dir())
    if not files:
        raise UsageError(f"there is no *.xq in {path}: each of them is a subscription")
    return files


def _entries(file: FilePath) -> Iterator[_Entry]:
    data = file_bytes(file).removeprefix(BOM)
    if file.suffix in ("", *TRANSFORMATIONS):
        try:
            yield _Entry(file.stem, data.decode())
        except UnicodeDecodeError as error:
            yield _Entry(file.stem, SubscriptionSyntaxError(f"the file is not UTF-8: {error}"))
        return
    if file.suffix != ".ndjson":
        raise UsageError(f"{file}: transformations are in *.xq, or in *.ndjson")
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                id, text, _ = read_json(line, "query")
                yield _Entry(id, text, number)
            except SubscriptionSyntaxError as error:
                yield _Entry(None, error, number)
