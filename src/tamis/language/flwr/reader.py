r"""A subscription that says what it makes of a message: text → ``Transformation``, or a refusal.

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

from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

from tamis.core.errors import SubscriptionError, SubscriptionLimitError, SubscriptionSyntaxError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import NOT_XML
from tamis.language.flwr.constructors import Constructors
from tamis.language.flwr.meaning import MeaningOfBinding, interned
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
from tamis.language.grammar import Parser, Syntax, Token, read_token
from tamis.language.model import HERE, Axis, Expression, NameTest, Nodes, Path, without_here

AGGREGATES = ("count", "sum", "min", "max", "avg")
_DOCUMENTS = ("doc", "document")

_EXPRESSION_HINTS = {
    "let": "there is no let: write the path where it is needed",
    "for": "there is one for: further ones are subscriptions of their own",
    "if": "there is no if: where leaves out what does not fulfil a condition",
    "some": "there are no quantifiers: a comparison is already true if one node has it",
    "every": "there are no quantifiers: not($x/y != 'a') is true where every y is 'a'",
    "element": "write the element itself: <name>{ … }</name>",
    "attribute": 'write the attribute into its element: <name attribute="{ … }"/>',
    "text": "write the text itself into an element",
}
_FUNCTION_HINTS = {
    "distinct-values": "nodes are selected once each; their values are not compared",
}


def parse_transformation(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Transformation:
    """Read one transforming subscription.

    Args:
        text: a FLWR expression within constant elements.
        namespaces: prefix → URI of the prefixes in ``text``, beside those that it declares;
            ``""`` is of elements without one.
        limits: bounds on length, nesting and number of predicates.

    Raises:
        SubscriptionSyntaxError: ``text`` is not XQuery, or uses an undeclared prefix.
        UnsupportedExpression: it is, but more than is supported.
        SubscriptionLimitError: it reaches a limit.

    >>> found = parse_transformation('<r>{ for $b in //book return <b>{ $b/title }</b> }</r>')
    >>> found.element.name, found.flwr.variable, len(found.flwr.paths)
    ('r', 'b', 1)
    >>> parse_transformation('<r>{ for $b in //book let $t := $b/title return $t }</r>')
    Traceback (most recent call last):
    tamis.core.errors.UnsupportedExpression: 'let' is not supported
      <r>{ for $b in //book let $t := $b/title return $t }</r>
                            ^
      hint: there is no let: write the path where it is needed
    """
    if len(text) > limits.subscription_chars:
        raise SubscriptionLimitError(
            f"an expression of {len(text):,} characters is longer than the limit "
            f"subscription_chars = {limits.subscription_chars:,}"
        )
    foreign = NOT_XML.search(text)
    if foreign is not None:
        raise SubscriptionSyntaxError(
            f"the character {foreign[0]!a} is in no XML document", text, foreign.start()
        )
    try:
        return _Reader(text, namespaces or {}, limits).transformation()
    except RecursionError:
        raise SubscriptionLimitError(
            "the expression is nested deeper than Python's recursion limit permits"
        ) from None


class _Reader(Constructors):
    """Recursive descent over characters; paths and conditions are left to XPath's parser."""

    def __init__(self, text: str, namespaces: Mapping[str, str], limits: Limits) -> None:
        super().__init__(text, namespaces, limits)
        self.xpath = Parser(text, limits, [])
        self.used: dict[str, str] = {}
        self.bound: str | None = None
        self.flwr: Flwr | None = None

    # -- the whole ---------------------------------------------------------------------------------

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
            place = self.at
            prefix = self.name("expected a prefix")
            if ":" in prefix or prefix in ("xml", "xmlns"):
                self.fail(f"{prefix!r} cannot be declared as a prefix", place)
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
        token = self.token()
        if token.kind != "string":
            self.fail(f"expected the URI of a namespace as a string, found {self.found()}")
        self.at = token.end
        self.scope[prefix] = token.text[1:-1]
        self.skip()
        self.expect(";")
        self.skip()

    def words(self, *words: str) -> bool:
        """Pass over some words and what is between them, if they are here."""
        start = self.at
        for word in words:
            if self.word() != word:
                self.at = start
                return False
            self.at += len(word)
            self.skip()
        return True

    # -- what is enclosed --------------------------------------------------------------------------

    def enclosed(self) -> Enclosed | Flwr:
        """``{ … }``: the FLWR expression, or inside of it what is made of a binding."""
        if self.bound is not None:
            return Enclosed(self.braces(in_attribute=False))
        self.at += 1
        self.skip()
        self.expect_for()
        if self.flwr is not None:
            self.unsupported(
                "a second for is not supported", self.at, "make it a subscription of its own"
            )
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

    def expect_for(self) -> None:
        if self.word() != "for":
            found = self.refuse_expression()
            self.fail(
                f"expected 'for', found {found}",
                hint="for and all that belongs to it stand in braces: "
                "<result>{ for $s in //section return $s/title }</result>",
            )

    def braces(self, *, in_attribute: bool) -> tuple[Item, ...]:
        """The items between braces, from the opening one on."""
        start = self.at
        self.at += 1
        with self.nested():
            return self.items("}", start, in_attribute=in_attribute)

    def items(self, end: str, start: int, *, in_attribute: bool) -> tuple[Item, ...]:
        """Items with commas between, up to a closing brace or parenthesis."""
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
        """What is made of a binding."""
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
            self.at += len(word)
            self.skip()
            self.expect("(")
            self.skip()
            path = self.relative_path()
            self.skip()
            self.expect(")")
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

    # -- FLWR --------------------------------------------------------------------------------------

    def for_expression(self) -> Flwr:
        self.at += len("for")
        self.skip()
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
            self.refuse_word(_EXPRESSION_HINTS.get(self.word()))
        if self.word() == "where":
            self.at += len("where")
            where = self.condition()
            self.skip()
        order = tuple(self.order_keys())
        self.skip()
        if self.word() in ("let", "for", "group", "count", "where"):
            self.refuse_word(_EXPRESSION_HINTS.get(self.word()))
        self.keyword("return")
        self.skip()
        result = self.item()
        self.bound = None
        self.check_order_of_attributes(result)
        return Flwr(variable, binding, where, order, result)

    def check_order_of_attributes(self, items: tuple[Item, ...]) -> None:
        """Refuse attributes that have no element to be in, or come behind its content."""
        for item in items:
            match item:
                case ReturnPath(path) if is_of_attributes(path):
                    self.unsupported(
                        "attributes have no element here",
                        self.at - 1,
                        "put them into an element: <name>{ … }</name>",
                    )
                case Constructor():
                    self.check_content(item)
                case _:
                    pass

    def check_content(self, element: Constructor) -> None:
        has_content = False
        for part in element.content:
            items = part.items if isinstance(part, Enclosed) else (part,)
            for item in items:
                if isinstance(item, Constructor):
                    self.check_content(item)
                if not (isinstance(item, ReturnPath) and is_of_attributes(item.path)):
                    has_content = True
                elif has_content:
                    self.unsupported(
                        f"attributes behind the content of <{element.name}> are not supported",
                        self.at - 1,
                        "put them before it",
                    )

    def variable(self) -> str:
        if not self.text.startswith("$", self.at):
            self.fail(f"expected a variable, found {self.found()}")
        self.at += 1
        self.skip_space()
        return self.name("expected the name of a variable")

    def order_keys(self) -> Iterator[OrderKey]:
        if self.word() == "stable":  # it always is
            self.at += len("stable")
            self.skip()
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
            self.at += len("number")
            self.skip()
            self.expect("(")
            self.skip()
        path = self.relative_path()
        if is_number:
            self.skip()
            self.expect(")")
        self.skip()
        is_descending = self.word() == "descending"
        if self.word() in ("ascending", "descending"):
            self.at += len(self.word())
            self.skip()
        is_greatest = False
        if self.word() == "empty":
            self.keyword("empty")
            self.skip()
            is_greatest = self.word() == "greatest"
            self.keyword("greatest" if is_greatest else "least")
        if self.word() == "collation":
            self.refuse_word("strings are ordered by their characters")
        return OrderKey(path, is_number, is_descending, is_greatest)

    # -- paths and conditions ----------------------------------------------------------------------

    def binding_path(self) -> Path:
        """The path of a for clause; whatever document it names, it is that of the message."""
        self.skip()
        start = self.at
        if self.word() in _DOCUMENTS and self.is_call(self.word()):
            self.at += len(self.word())
            self.skip()
            self.expect("(")
            self.skip()
            token = self.token()
            if token.kind != "string":
                self.fail(f"expected the name of a document as a string, found {self.found()}")
            self.at = token.end
            self.skip()
            self.expect(")")
            self.skip()
            if not self.text.startswith("/", self.at):
                self.fail(f"expected '/' or '//', found {self.found()}")
            start = self.at
        syntax = self.embedded(Parser.union)
        path = self.one_path(syntax, start)
        last = path.steps[-1] if path.steps else HERE
        if last.axis is Axis.ATTRIBUTE or not isinstance(last.test, NameTest):
            self.unsupported("a for clause binds elements, named or *", start)
        return interned(Path(True, path.steps))

    def relative_path(self) -> Path:
        """A path that begins with the variable."""
        start = self.at
        if not self.text.startswith("$", start):
            found = self.refuse_expression()
            self.fail(f"expected a path that begins with ${self.bound}, found {found}")
        return self.one_path(self.embedded(Parser.union), start)

    def one_path(self, syntax: Syntax, position: int) -> Path:
        meaning = self.meaning()

        def read(syntax: Syntax) -> Path:
            nodes = meaning.operand(syntax)
            if not isinstance(nodes, Nodes):
                self.fail("expected a path", position)
            if len(nodes.paths) > 1:
                self.unsupported(
                    "a union is not supported here", position, "write a subscription for each path"
                )
            (path,) = nodes.paths
            return interned(Path(path.absolute, without_here(path.steps)))

        return meaning.analyzed(syntax, read, as_boolean=False)

    def condition(self) -> Expression:
        self.skip()
        if self.word() in ("some", "every", "if", "let"):
            self.refuse_word(_EXPRESSION_HINTS[self.word()])
        syntax = self.embedded(Parser.expression)
        meaning = self.meaning()
        return meaning.analyzed(syntax, meaning.boolean)

    def meaning(self) -> MeaningOfBinding:
        """Tells what syntax means here, for the one bound variable."""
        return MeaningOfBinding(self.text, self.scope, self.used, self.bound)

    def embedded(self, read: Callable[[Parser], Syntax]) -> Syntax:
        """What XPath's parser reads from here on, up to what cannot belong to it."""
        self.xpath.tokens = self.tokens()
        self.xpath.index = 0
        self.xpath.nesting = self.nesting
        try:
            syntax = read(self.xpath)
        except SubscriptionSyntaxError as error:
            last = self.xpath.token
            if last.kind == "end" and last.text in ("'", '"') and error.position == last.position:
                self.fail("the string is not closed", last.position)
            raise
        self.at = self.xpath.token.position
        return syntax

    def tokens(self) -> list[Token]:
        """The tokens from here on; what cannot be one is the end."""
        found: list[Token] = []
        at = self.at
        while True:
            at = self.after_space(at)
            try:
                token = read_token(self.text, at)
            except SubscriptionSyntaxError as error:
                token = Token("end", self.text[at : at + 1], error.position or at)
            found.append(token)
            if token.kind == "end":
                return found
            at = token.end

    # -- refusals ----------------------------------------------------------------------------------

    def refuse_expression(self) -> str:
        """Refuse what is an expression of XQuery that is not supported; else say what it is."""
        word = self.word()
        if word in _EXPRESSION_HINTS:
            self.refuse_word(_EXPRESSION_HINTS[word])
        if word and self.is_call(word):
            self.unsupported(f"{word}() is not supported here", self.at, _FUNCTION_HINTS.get(word))
        character = self.text[self.at : self.at + 1]
        if self.bound and (character in "\"'/@." or character.isdigit()) and character:
            self.unsupported(
                f"only paths of ${self.bound}, aggregates and elements are supported here", self.at
            )
        return self.found()

    def instead_of_string(self, word: str, *, in_attribute: bool) -> str | None:
        """What to write for the string of a path, if there is something."""
        start = self.at
        try:
            self.at += len(word)
            self.skip()
            self.expect("(")
            self.skip()
            from_here = self.at
            path = self.relative_path()
            written = self.text[from_here : self.at].rstrip()
            self.skip()
            self.expect(")")
        except SubscriptionError:
            return None
        finally:
            self.at = start
        if in_attribute:
            return f"write {written}"
        last = path.steps[-1] if path.steps else HERE
        is_of_elements = not path.steps or isinstance(last.test, NameTest)
        if (word == "data" and path.steps) or last.axis is Axis.ATTRIBUTE or not is_of_elements:
            return None
        return f"write {written}//text()"

    def refuse_word(self, hint: str | None) -> NoReturn:
        self.unsupported(f"'{self.word()}' is not supported", self.at, hint)


def is_of_attributes(path: Path) -> bool:
    """Whether a path selects attributes."""
    return bool(path.steps) and path.steps[-1].axis is Axis.ATTRIBUTE
