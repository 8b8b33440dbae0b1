"""Paths and conditions in a FLWR expression: XPath's, but that they begin with its variable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from tamis.core.errors import SubscriptionError, SubscriptionSyntaxError
from tamis.core.limits import Limits
from tamis.language import grammar as tree
from tamis.language import model
from tamis.language.analyzer import Analyzer
from tamis.language.flwr.constructors import Constructors
from tamis.language.grammar import Parser, Syntax, Token
from tamis.language.model import Axis, NameTest, Path, Step

_DOCUMENTS = ("doc", "document")

EXPRESSION_HINTS = {
    "let": "there is no let: write the path where it is needed",
    "for": "there is one for: further ones are subscriptions of their own",
    "if": "there is no if: where leaves out what does not fulfil a condition",
    "some": "there are no quantifiers: a comparison is already true if one node has it",
    "every": "there are no quantifiers: not($x/y != 'a') is true where every y is 'a'",
    "element": "write the element itself: <name>{ … }</name>",
    "attribute": 'write the attribute into its element: <name attribute="{ … }"/>',
    "text": "write the text itself into an element",
}
_FUNCTION_HINTS = {"distinct-values": "nodes are selected once each; their values are not compared"}
_PATHS_MAX = 1 << 16
_paths: dict[Path, Path] = {}


def interned(path: Path) -> Path:
    """One object for paths that are equal, so that what is known of it can be kept by identity."""
    if len(_paths) > _PATHS_MAX:
        _paths.clear()
    return _paths.setdefault(path, path)


class BindingAnalyzer(Analyzer):
    """Analyzes paths and conditions relative to the node that a variable is bound to.

    ``bound`` is the name of the variable; None for the binding path itself. ``used`` takes the
    prefixes that the text uses.
    """

    otherwise = None  # not even lxml evaluates what is not supported

    def __init__(
        self, text: str, namespaces: Mapping[str, str], used: dict[str, str], bound: str | None
    ) -> None:
        super().__init__(text, namespaces)
        self.used = used
        self.bound = bound

    def variable(self, syntax: tree.Variable) -> Path:
        if syntax.name != self.bound:
            here = f"only ${self.bound} is" if self.bound else "none is here"
            self.syntax_error(f"the variable ${syntax.name} is not bound: {here}", syntax.position)
        if self.inside_predicate:
            self.unsupported("a variable in a predicate is not supported", syntax.position)
        return Path(False, ())

    def path(self, syntax: tree.LocationPath) -> Path:
        if self.bound and not self.inside_predicate:
            message = f"a path that does not begin with ${self.bound} is not supported"
            hint = f"write ${self.bound}/… for what is inside of what was bound"
            self.unsupported(message, syntax.position, hint)
        return super().path(syntax)

    def filtered(self, syntax: tree.FilterExpression) -> Path:
        """``$s[@id]/title`` too: the predicates are those of a step to the node itself."""
        if isinstance(syntax.primary, tree.Variable) and syntax.predicates:
            self.variable(syntax.primary)
            with self.in_predicate():
                predicates = tuple(self.predicate(each, Axis.SELF) for each in syntax.predicates)
            here = Step(Axis.SELF, model.KindTest.NODE, predicates)
            return interned(Path(False, (here, *map(self.step, syntax.steps))))
        return interned(super().filtered(syntax))


class EmbeddedPaths(Constructors):
    """Leaves paths and conditions to XPath's parser, and reads on behind them."""

    def __init__(self, text: str, namespaces: Mapping[str, str], limits: Limits) -> None:
        super().__init__(text, namespaces, limits)
        self.xpath = Parser(text, limits, [])
        self.used: dict[str, str] = {}
        self.bound: str | None = None

    def binding_path(self) -> Path:
        """The path of a for clause; whatever document it names, it is that of the message."""
        self.skip()
        start = self.at
        if self.word() in _DOCUMENTS and self.is_call(self.word()):
            self.enter_call(self.word())
            self.string("the name of a document")
            self.leave_call()
            self.skip()
            if not self.comes("/"):
                self.fail(f"expected '/' or '//', found {self.found()}")
            start = self.at
        syntax = self.embedded(Parser.union)
        path = self.one_path(syntax, start)
        last = path.steps[-1] if path.steps else model.HERE
        if last.axis is Axis.ATTRIBUTE or not isinstance(last.test, NameTest):
            self.unsupported("a for clause binds elements, named or *", start)
        return interned(Path(True, path.steps))

    def relative_path(self) -> Path:
        start = self.at
        if not self.text.startswith("$", start):
            found = self.refuse_expression()
            self.fail(f"expected a path that begins with ${self.bound}, found {found}")
        return self.one_path(self.embedded(Parser.union), start)

    def one_path(self, syntax: Syntax, position: int) -> Path:
        analyzer = self.analyzer()

        def read(syntax: Syntax) -> Path:
            nodes = analyzer.operand(syntax)
            if not isinstance(nodes, model.Nodes):
                self.fail("expected a path", position)
            if len(nodes.paths) > 1:
                hint = "write a subscription for each path"
                self.unsupported("a union is not supported here", position, hint)
            (path,) = nodes.paths
            return interned(Path(path.absolute, model.without_here(path.steps)))

        return analyzer.analyzed(syntax, read, as_boolean=False)

    def condition(self) -> model.Expression:
        self.skip()
        if self.word() in ("some", "every", "if", "let"):
            self.refuse_word(EXPRESSION_HINTS[self.word()])
        syntax = self.embedded(Parser.expression)
        analyzer = self.analyzer()
        return analyzer.analyzed(syntax, analyzer.boolean)

    def analyzer(self) -> BindingAnalyzer:
        return BindingAnalyzer(self.text, self.scope, self.used, self.bound)

    def embedded(self, read: Callable[[Parser], Syntax]) -> Syntax:
        """What XPath's parser reads from here on, up to what cannot belong to it."""
        self.xpath.tokens = self.tokens()
        self.xpath.index, self.xpath.nesting = 0, self.nesting
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
        found = [self.token(self.after_space(self.at))]
        while found[-1].kind != "end":
            found.append(self.token(self.after_space(found[-1].end)))
        return found

    def refuse_expression(self) -> str:
        """Refuse what is an expression of XQuery that is not supported; else say what it is."""
        word = self.word()
        if word in EXPRESSION_HINTS:
            self.refuse_word(EXPRESSION_HINTS[word])
        if word and self.is_call(word):
            self.unsupported(f"{word}() is not supported here", self.at, _FUNCTION_HINTS.get(word))
        character = self.text[self.at : self.at + 1]
        if self.bound and (character in "\"'/@." or character.isdigit()) and character:
            message = f"only paths of ${self.bound}, aggregates and elements are supported here"
            self.unsupported(message, self.at)
        return self.found()

    def instead_of_string(self, word: str, *, in_attribute: bool) -> str | None:
        start = self.at
        try:
            self.enter_call(word)
            from_here = self.at
            path = self.relative_path()
            written = self.text[from_here : self.at].rstrip()
            self.leave_call()
        except SubscriptionError:
            return None
        finally:
            self.at = start
        if in_attribute:
            return f"write {written}"
        last = path.steps[-1] if path.steps else model.HERE
        is_of_elements = not path.steps or isinstance(last.test, NameTest)
        if (word == "data" and path.steps) or last.axis is Axis.ATTRIBUTE or not is_of_elements:
            return None
        return f"write {written}//text()"

    def refuse_word(self, hint: str | None) -> NoReturn:
        self.unsupported(f"'{self.word()}' is not supported", self.at, hint)


def is_of_attributes(path: Path) -> bool:
    """Whether a path selects attributes."""
    return bool(path.steps) and path.steps[-1].axis is Axis.ATTRIBUTE
