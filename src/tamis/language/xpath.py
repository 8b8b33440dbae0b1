"""Subscription text → :class:`~tamis.language.model.Query`, or a refusal that says where and why.

What is supported is the forward fragment of XPath 1.0 that can be answered in one pass over a
document (the table in docs/xpath.md, generated from the tests). Everything else that
:mod:`tamis.language.grammar` can read is refused here, with the position and, where there is one,
an expression that means the same and is supported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isnan
from typing import ClassVar, NoReturn, TypeVar

from tamis.core.errors import SubscriptionLimitError, SubscriptionSyntaxError, UnsupportedExpression
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import USUAL_PREFIXES, XML_NAMESPACE
from tamis.language.constraints import is_filter
from tamis.language.equivalents import equivalent
from tamis.language.grammar import (
    Call,
    Change,
    FilterExpression,
    LocationPath,
    Negation,
    Number,
    Operation,
    StepSyntax,
    String,
    Syntax,
    Variable,
    absolute_text,
    parse_syntax,
    walk,
)
from tamis.language.model import (
    And,
    Axis,
    Compare,
    Constant,
    Contains,
    Count,
    Exists,
    Expression,
    KindTest,
    NameOf,
    NameTest,
    Nodes,
    NodeTest,
    NormalizeSpace,
    Not,
    Or,
    Path,
    Position,
    Predicate,
    Query,
    StartsWith,
    Step,
    StringFunction,
    StringLength,
    StringOf,
    Value,
)
from tamis.language.values import compare, xpath_number

T = TypeVar("T")

_NOT_ELEMENTS = ("attribute", "namespace")
"""The axes whose nodes, as names mean them, are no elements."""
_SUPPORTED_AXES = {axis.value: axis for axis in Axis}
_HERE = Path(False, (Step(Axis.SELF, KindTest.NODE),))

# The core library of XPath 1.0 (section 4): name → (fewest, most) arguments.
_ARITY = {
    "last": (0, 0),
    "position": (0, 0),
    "count": (1, 1),
    "id": (1, 1),
    "local-name": (0, 1),
    "namespace-uri": (0, 1),
    "name": (0, 1),
    "string": (0, 1),
    "concat": (2, 1 << 30),
    "starts-with": (2, 2),
    "contains": (2, 2),
    "substring-before": (2, 2),
    "substring-after": (2, 2),
    "substring": (2, 3),
    "string-length": (0, 1),
    "normalize-space": (0, 1),
    "translate": (3, 3),
    "boolean": (1, 1),
    "not": (1, 1),
    "true": (0, 0),
    "false": (0, 0),
    "lang": (1, 1),
    "number": (0, 1),
    "sum": (1, 1),
    "floor": (1, 1),
    "ceiling": (1, 1),
    "round": (1, 1),
}
_NODE_SET_FUNCTIONS = frozenset(("count", "sum", "local-name", "name", "namespace-uri"))

_FUNCTION_ADVICE = {
    "namespace-uri": "ask for Q{URI}name, or declare a prefix for the namespace",
    "id": "it finds what a DTD declares to be an ID; //*[@id = '…'] finds attributes of that name",
}
_OF_EVENTS = "this is a filter of events: use tamis.compile_events, or tamis match-events"

Operand = Value | Expression | str | float
"""An expression with the type that XPath gives it: nodes, a string, a number or a boolean."""


def parse(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    with_hint: bool = True,
) -> Query:
    """Read one subscription.

    Args:
        text: an XPath 1.0 expression; its context is the document node.
        namespaces: prefix → URI for the prefixes in ``text``; ``xml`` is always declared. The
            prefix ``""`` is of elements without one: by default they are in no namespace.
        limits: bounds on length, nesting and number of predicates.
        with_hint: a refusal says what to write instead; to find that takes longer than to refuse.

    Raises:
        SubscriptionSyntaxError: ``text`` is not XPath 1.0, or uses an undeclared prefix.
        UnsupportedExpression: it is, but outside the streamed fragment.
        SubscriptionLimitError: it reaches a limit.

    >>> parse("/order").expression
    Exists(paths=(Path(absolute=True, steps=(Step(axis=<Axis.CHILD: 'child'>, \
test=NameTest(namespace='', local='order'), predicates=()),)),))
    >>> parse("//a[last()]")
    Traceback (most recent call last):
    tamis.core.errors.UnsupportedExpression: last() is not supported: how many siblings follow ...
      //a[last()]
          ^
      hint: unsupported="slow" has lxml evaluate it
    """
    syntax = _syntax(text, limits)
    meaning = Meaning(text, namespaces or {})
    return meaning.understood(syntax, meaning.query, with_hint=with_hint)


def _syntax(text: str, limits: Limits) -> Syntax:
    try:
        return parse_syntax(text, limits)
    except SubscriptionSyntaxError as error:
        if not is_filter(text, limits):
            raise
        raise SubscriptionSyntaxError(error.message, text, error.position, _OF_EVENTS) from None


def parse_value(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Operand:
    """Read an expression that is to be evaluated, document by document.

    More is supported than :func:`parse` does: ``count()`` of any path, and ``string()``.

    Raises:
        SubscriptionSyntaxError, UnsupportedExpression, SubscriptionLimitError: as :func:`parse`.

    >>> parse_value("2"), parse_value("count(//a) > 1") == parse_value("1 < count(//a)")
    (2.0, True)
    """
    syntax = _syntax(text, limits)
    meaning = _ValueMeaning(text, namespaces or {})
    return meaning.understood(syntax, meaning.operand, as_boolean=False)


def parse_for_slow_lane(
    text: str,
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> str:
    """Check any XPath 1.0 expression, and write its context, the document node, into it.

    Name tests that XPath 1.0 does not have become predicates: ``Q{URI}name``, ``*:name``, and those
    of a default namespace.

    Raises:
        SubscriptionSyntaxError, SubscriptionLimitError: as :func:`parse`.
        UnsupportedExpression: it has variables, which nobody could bind.

    >>> parse_for_slow_lane("a/b[last()]")
    '/a/b[last()]'
    >>> parse_for_slow_lane("a[last()]", {"": "urn:d"})
    "/*[local-name() = 'a' and namespace-uri() = 'urn:d'][last()]"
    """
    syntax = _syntax(text, limits)
    meaning = Meaning(text, namespaces or {})
    meaning.check(syntax)
    return absolute_text(text, syntax, meaning.of_xpath_1(syntax))


def element_tests(
    text: str, namespaces: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
) -> list[NameTest]:
    """The tests of names of elements in an expression that can be used, as they are written.

    >>> element_tests("//a[b/@c]", {})
    [NameTest(namespace='', local='a'), NameTest(namespace='', local='b')]
    """
    meaning = Meaning(text, namespaces)
    steps = [
        step
        for step in walk(parse_syntax(text, limits))
        if isinstance(step, StepSyntax) and step.has_name and step.axis not in _NOT_ELEMENTS
    ]
    return [meaning.name_test(step) for step in sorted(steps, key=lambda step: step.test_position)]


class Meaning:
    """Gives syntax trees their meaning; methods are named after what they return.

    Attributes:
        otherwise: what can be done about an expression of which no supported equivalent is known.
    """

    otherwise: ClassVar[str | None] = 'unsupported="slow" has lxml evaluate it'

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        self.text = text
        self.namespaces = namespaces
        self.used: dict[str, str] = {}
        self.inside_predicate = 0

    def understood(
        self,
        syntax: Syntax,
        read: Callable[[Syntax], T],
        *,
        as_boolean: bool = True,
        with_hint: bool = True,
    ) -> T:
        """Read an expression by a method of this object; a refusal has a hint.

        Args:
            as_boolean: nothing but the truth of it matters, and the nodes of a path.
            with_hint: look for a supported expression that means the same.
        """
        try:
            return read(syntax)
        except UnsupportedExpression as refusal:
            self.check(syntax)  # what is not XPath at all is said first
            if not with_hint:
                raise
            message, hint, position = refusal.message, refusal.hint, refusal.position
            is_of_events = is_filter(self.text)
        except RecursionError:
            raise SubscriptionLimitError(
                "the expression is nested deeper than Python's recursion limit permits"
            ) from None
        found = None if is_of_events else equivalent(syntax, read, as_boolean=as_boolean)
        if is_of_events:
            hint = _OF_EVENTS
        elif found is None:
            hint = "; ".join(filter(None, (hint, self.otherwise))) or None
        else:
            hint = f"write {found.text}"
            if not found.selects:
                hint += ", which matches the same documents, but selects nothing"
        raise UnsupportedExpression(message, self.text, position, hint)

    @contextmanager
    def in_predicate(self) -> Iterator[None]:
        """The body of the ``with`` statement reads a predicate."""
        self.inside_predicate += 1
        try:
            yield
        finally:  # also where it is refused: this object is asked about the whole then
            self.inside_predicate -= 1

    def query(self, syntax: Syntax) -> Query:
        expression = self.boolean(syntax)
        is_truth = isinstance(expression, Exists) and not _is_node_set(syntax)
        return Query(expression, tuple(sorted(self.used.items())), is_truth)

    def check(self, syntax: Syntax) -> None:
        """Refuse what no XPath 1.0 processor could evaluate."""
        for node in walk(syntax):
            match node:
                case Call():
                    self.check_call(node)
                case StepSyntax() if node.has_name:
                    self.name_test(node)
                case FilterExpression(primary=primary):
                    self.check_continued(primary)
                case Operation(operators=(operator, *_), operands=operands):
                    if operator.text == "|":
                        for operand in operands:
                            self.check_node_set(operand, "'|'")
                case Variable():
                    self.variable(node)

    # -- expressions ---------------------------------------------------------------------------

    def boolean(self, syntax: Syntax) -> Expression:
        """The expression converted to a boolean, by the rules of XPath."""
        match syntax:
            case Operation(operators=(operator, *_), operands=operands) if operator.text in (
                "and",
                "or",
            ):
                return _joined(operator.text, [self.boolean(operand) for operand in operands])
        return _as_boolean(self.operand(syntax))

    def operand(self, syntax: Syntax) -> Operand:
        """The expression with the type that XPath gives it."""
        match syntax:
            case Number(value=value) | String(value=value):
                return value
            case Negation(position=position, odd=odd, operand=Number(value=value)):
                return -value if odd else value
            case Negation(position=position):
                self.unsupported("arithmetic is not supported", position)
            case Variable():
                return Nodes((self.variable(syntax),))
            case LocationPath():
                return Nodes((self.path(syntax),))
            case FilterExpression():
                return Nodes((self.filtered(syntax),))
            case Operation():
                return self.operation(syntax)
            case Call():
                return self.call(syntax)

    def operation(self, syntax: Operation) -> Operand:
        operator = syntax.operators[0]
        if operator.text in ("and", "or"):
            return self.boolean(syntax)
        if operator.text == "|":
            return Nodes(self.union(syntax))
        if operator.text in ("+", "-", "*", "div", "mod"):
            self.unsupported(f"arithmetic ('{operator.text}') is not supported", operator.position)
        if len(syntax.operands) > 2:
            self.unsupported(
                "a chain of comparisons is not supported",
                syntax.operators[1].position,
                "for a range, join two comparisons with and",
            )
        left, right = (self.operand(operand) for operand in syntax.operands)
        return self.comparison(operator.text, left, right, operator.position)

    def comparison(self, operator: str, left: Operand, right: Operand, position: int) -> Expression:
        if isinstance(left, str | float | Constant) and not isinstance(right, str | float):
            left, right = right, left
            operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)
        if isinstance(left, str | float):
            self.unsupported("a comparison of two literals is not supported", position)
        literal: str | float | bool
        if isinstance(right, Constant):
            # A boolean turns = and != into a comparison of booleans. In the others all but node
            # sets become numbers at once, and node sets first become booleans (section 3.4).
            if operator in ("=", "!=") or isinstance(left, Nodes):
                left = _as_boolean(left)
                literal = right.value
            else:
                literal = float(right.value)
        elif isinstance(right, str | float):
            literal = right
        else:
            self.unsupported("one side of a comparison must be a literal", position)
        if isinstance(left, Expression):
            return _compare_boolean(operator, left, literal)
        return _compare_value(operator, left, literal)

    def call(self, syntax: Call) -> Operand:
        name, arguments = syntax.name, syntax.arguments
        self.check_call(syntax)
        match name:
            case "true" | "false":
                return Constant(name == "true")
            case "boolean":
                return self.boolean(arguments[0])
            case "not":
                return Not(self.boolean(arguments[0]))
            case "count":
                return Count(self.counted(arguments[0]))
            case "string-length":
                return StringLength(self.text_argument(syntax))
            case "normalize-space":
                return NormalizeSpace(self.text_argument(syntax))
            case "name" | "local-name":
                path = self.one_path(arguments[0], f"{name}()") if arguments else _HERE
                return NameOf(path, local=name == "local-name")
            case "contains" | "starts-with":
                text = self.text_argument(syntax)
                literal = arguments[1]
                if not isinstance(literal, String):
                    self.unsupported(
                        f"the second argument of {name}() must be a string literal",
                        literal.position,
                    )
                return (Contains if name == "contains" else StartsWith)(text, literal.value)
        reason = ": how many siblings follow is not known when it is read" if name == "last" else ""
        self.unsupported(
            f"{name}() is not supported{reason}", syntax.position, _FUNCTION_ADVICE.get(name)
        )

    def check_call(self, syntax: Call) -> None:
        """Refuse what XPath 1.0 itself refuses: unknown functions, wrong arguments."""
        name, arguments = syntax.name, syntax.arguments
        if name not in _ARITY:
            from difflib import get_close_matches  # noqa: PLC0415 - for a message

            close = get_close_matches(name, _ARITY, 1, cutoff=0.8)
            self.syntax_error(
                f"XPath 1.0 has no function {name}()",
                syntax.position,
                f"did you mean {close[0]}()?" if close else None,
            )
        fewest, most = _ARITY[name]
        if not fewest <= len(arguments) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} or {most}"
            if most > 3:
                wanted = f"at least {fewest}"
            self.syntax_error(
                f"{name}() takes {wanted} argument{'' if wanted == '1' else 's'}, "
                f"{len(arguments)} given",
                syntax.position,
            )
        if name in _NODE_SET_FUNCTIONS:
            for argument in arguments:
                self.check_node_set(argument, f"{name}()")

    def check_node_set(self, syntax: Syntax, taker: str) -> None:
        if _is_node_set(syntax):
            return
        self.syntax_error(f"{taker} takes a path", syntax.position)

    # -- functions of strings ------------------------------------------------------------------

    def text_argument(self, call: Call) -> StringFunction:
        """The first argument of a string function, or the context node."""
        if not call.arguments:
            return StringOf(_HERE)
        argument = call.arguments[0]
        operand = self.operand(argument)
        if isinstance(operand, Nodes):
            if len(operand.paths) > 1:
                self.unsupported(f"{call.name}() of a union is not supported", argument.position)
            return StringOf(operand.paths[0])
        if isinstance(operand, StringFunction):
            return operand
        self.unsupported(
            f"the first argument of {call.name}() must be a path or a string function",
            argument.position,
        )

    def one_path(self, syntax: Syntax, taker: str) -> Path:
        nodes = self.operand(syntax)
        if not isinstance(nodes, Nodes) or len(nodes.paths) > 1:
            self.unsupported(f"{taker} of a union is not supported", syntax.position)
        return nodes.paths[0]

    def counted(self, syntax: Syntax) -> Path:
        path = self.one_path(syntax, "count()")
        for step in path.steps:
            if step.axis not in (Axis.CHILD, Axis.ATTRIBUTE):
                self.unsupported(
                    "count() is supported over child and attribute steps only",
                    syntax.position,
                )
        return path

    # -- paths ---------------------------------------------------------------------------------

    def union(self, syntax: Operation) -> tuple[Path, ...]:
        paths: list[Path] = []
        for operand in syntax.operands:
            self.check_node_set(operand, "'|'")
            nodes = self.operand(operand)
            assert isinstance(nodes, Nodes)
            paths.extend(nodes.paths)
        return tuple(dict.fromkeys(paths))

    def path(self, syntax: LocationPath) -> Path:
        if syntax.absolute and self.inside_predicate:
            self.unsupported("an absolute path in a predicate is not supported", syntax.position)
        return Path(syntax.absolute, tuple(self.step(step) for step in syntax.steps))

    def variable(self, syntax: Variable) -> Path:
        """The nodes that a variable stands for, relative to the context: there is none."""
        self.unsupported("variables are not supported", syntax.position, "put its value there")

    def filtered(self, syntax: FilterExpression) -> Path:
        """``(path)/more``: what needs no parentheses is accepted, the rest refused."""
        self.check_continued(syntax.primary)
        primary = self.operand(syntax.primary)
        assert isinstance(primary, Nodes)
        if syntax.predicates:
            self.unsupported(
                "a predicate on an expression in parentheses is not supported",
                syntax.predicates[0].position,
            )
        if len(primary.paths) > 1:
            self.unsupported("a union that is continued is not supported", syntax.position)
        start = primary.paths[0]
        return Path(start.absolute, start.steps + tuple(self.step(s) for s in syntax.steps))

    def check_continued(self, primary: Syntax) -> None:
        if isinstance(primary, Call):
            self.check_call(primary)
        if not _is_node_set(primary):
            self.syntax_error(
                "only a path can be continued with / or a predicate", primary.position
            )

    def step(self, syntax: StepSyntax) -> Step:
        axis = _SUPPORTED_AXES.get(syntax.axis)
        if axis is None:
            self.unsupported(f"the axis {syntax.axis}:: is not supported", syntax.position)
        test = self.node_test(syntax)
        with self.in_predicate():
            predicates = tuple(self.predicate(p, axis) for p in syntax.predicates)
        if axis is Axis.ATTRIBUTE and test is KindTest.TEXT:  # no attribute is a text node
            return Step(axis, KindTest.NODE, (*predicates, Constant(False)))
        return Step(axis, test, predicates)

    def node_test(self, syntax: StepSyntax) -> NodeTest:
        test = syntax.test
        if syntax.has_name:
            return self.name_test(syntax)
        if test not in ("node()", "text()"):
            self.unsupported(f"the node test {test} is not supported", syntax.position)
        return KindTest(test)

    def name_test(self, syntax: StepSyntax) -> NameTest:
        if syntax.test.startswith("Q{"):
            written, _, local = syntax.test[2:].rpartition("}")
            namespace = " ".join(written.split())
            return NameTest(namespace, None if local == "*" else local, f"Q{{{namespace}}}")
        prefix, colon, local = syntax.test.rpartition(":")
        name = None if local == "*" else local
        if prefix == "*":
            return NameTest(None, name)
        if not colon:
            if name is None:
                return NameTest(None, None)
            default = "" if syntax.axis in _NOT_ELEMENTS else self.namespaces.get("", "")
            if default:
                self.used[""] = default
            return NameTest(default, name)
        uri = XML_NAMESPACE if prefix == "xml" else self.namespaces.get(prefix)
        if uri is None:
            self.syntax_error(
                f"the prefix '{prefix}' is not declared",
                syntax.position,
                f'declare it: namespaces={{"{prefix}": "{USUAL_PREFIXES.get(prefix, "…")}"}}',
            )
        self.used[prefix] = uri
        return NameTest(uri, name, prefix)

    def of_xpath_1(self, syntax: Syntax) -> Iterator[Change]:
        """The changes that make tests of XPath 1.0 of all others."""
        for step in walk(syntax):
            if not isinstance(step, StepSyntax) or not step.has_name:
                continue
            test = self.name_test(step)
            if test.prefix and "{" not in test.prefix:
                continue
            if test.prefix is not None or test.namespace or (test.namespace is None and test.local):
                end = step.test_position + len(step.test)
                yield step.test_position, end, _as_predicates(test)

    def predicate(self, syntax: Syntax, axis: Axis) -> Predicate:
        operand = self.operand(syntax)
        if isinstance(operand, float):
            if axis is not Axis.CHILD:
                self.unsupported(
                    f"a position on the {axis.value} axis is not supported", syntax.position
                )
            whole = operand.is_integer() and operand > 0  # infinities are not integers
            return Position(int(operand)) if whole else Constant(False)
        if isinstance(operand, Count | StringLength):
            self.unsupported(
                "a number that is not a literal is not supported as a position",
                syntax.position,
                "a number in a predicate is a position: for a condition, compare it",
            )
        return _as_boolean(operand)

    # -- refusals ------------------------------------------------------------------------------

    def unsupported(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise UnsupportedExpression(message, self.text, position, hint)

    def syntax_error(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise SubscriptionSyntaxError(message, self.text, position, hint)


class _ValueMeaning(Meaning):
    """Also takes what only a whole document tells, outside of predicates."""

    otherwise = None

    def call(self, syntax: Call) -> Operand:
        if syntax.name == "string" and not self.inside_predicate:
            self.check_call(syntax)
            return self.text_argument(syntax)
        return super().call(syntax)

    def counted(self, syntax: Syntax) -> Path:
        if self.inside_predicate:
            return super().counted(syntax)
        return self.one_path(syntax, "count()")


def _as_predicates(test: NameTest) -> str:
    conditions = []
    if test.local is not None:
        conditions.append(f"local-name() = '{test.local}'")
    if test.namespace is not None:
        conditions.append(f"namespace-uri() = {_quoted(test.namespace)}")
    return f"*[{' and '.join(conditions)}]"


def _quoted(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    pieces = [f"'{piece}'" for piece in text.split("'")]
    return "concat(" + ', "\'", '.join(pieces) + ")"


def _is_node_set(syntax: Syntax) -> bool:
    """Whether XPath's static types let the expression be a node set (variables may be one)."""
    match syntax:
        case LocationPath() | FilterExpression() | Variable() | Call(name="id"):
            return True
        case Operation(operators=(operator, *_)):
            return operator.text == "|"
    return False


def _as_boolean(operand: Operand) -> Expression:
    """XPath's boolean(): node sets and strings that are not empty, numbers but 0 and NaN."""
    match operand:
        case str() | float():
            return Constant(bool(operand))
        case Nodes(paths):
            return Exists(paths)
        case Count() | StringLength():
            return Compare("!=", operand, 0.0)
        case StringOf() | NameOf() | NormalizeSpace():
            return Compare("!=", operand, "")
    return operand


def _joined(operator: str, operands: list[Expression]) -> Expression:
    kind = And if operator == "and" else Or
    flat: list[Expression] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    return kind(tuple(flat))


def _compare_value(operator: str, value: Value, literal: str | float) -> Expression:
    """A comparison in the one form that :class:`Compare` has for it."""
    numeric = operator not in ("=", "!=") or isinstance(value, Count | StringLength)
    if isinstance(literal, str) and numeric:
        literal = xpath_number(literal)
        if isnan(literal):  # it is unequal to every number, and neither less nor more
            return Constant(operator == "!=")
    return Compare(operator, value, literal)


def _compare_boolean(operator: str, operand: Expression, literal: str | float | bool) -> Expression:
    """A boolean compared with a literal: one of the operand, its negation, or a constant."""
    if operator in ("=", "!="):
        truth = bool(literal)
        return operand if truth == (operator == "=") else Not(operand)
    number = xpath_number(literal) if isinstance(literal, str) else float(literal)
    when_true, when_false = (compare(operator, value, number) for value in (1.0, 0.0))
    if when_true == when_false:
        return Constant(when_true)
    return operand if when_true else Not(operand)
