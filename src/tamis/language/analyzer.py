"""Syntax tree → :class:`~tamis.language.model.Query`: semantic analysis of the streamed fragment.

What XPath 1.0 has and the fragment has not is refused, with the position and, where there is one,
a supported expression that means the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import isnan
from typing import ClassVar, NoReturn, TypeVar

from tamis.core.errors import SubscriptionSyntaxError, UnsupportedExpression
from tamis.core.names import USUAL_PREFIXES, XML_NAMESPACE
from tamis.language import grammar as tree
from tamis.language import model
from tamis.language.grammar import Syntax
from tamis.language.model import Axis, Constant, Expression, KindTest, Nodes, Path, Predicate
from tamis.language.values import MIRRORED, compare, xpath_number

T = TypeVar("T")

NOT_ELEMENTS = ("attribute", "namespace")
"""The axes on which a name test is not one of elements."""
FOR_EVENTS = "this is a filter of events: use tamis.compile_events, or tamis match-events"
_SUPPORTED_AXES = {axis.value: axis for axis in Axis}
_HERE = Path(False, (model.HERE,))

# The core library of XPath 1.0 (section 4): name → (fewest, most) arguments.
_ANY_NUMBER = 1 << 30
_ARITY = {
    name: arguments
    for arguments, names in {
        (0, 0): "last position true false",
        (0, 1): "local-name namespace-uri name string string-length normalize-space number",
        (1, 1): "count id boolean not lang sum floor ceiling round",
        (2, 2): "starts-with contains substring-before substring-after",
        (2, 3): "substring",
        (2, _ANY_NUMBER): "concat",
        (3, 3): "translate",
    }.items()
    for name in names.split()
}
_NODE_SET_FUNCTIONS = frozenset(("count", "sum", "local-name", "name", "namespace-uri"))
_FUNCTION_ADVICE = {
    "namespace-uri": "ask for Q{URI}name, or declare a prefix for the namespace",
    "id": "it finds what a DTD declares to be an ID; //*[@id = '…'] finds attributes of that name",
}

Operand = model.Value | Expression | str | float
"""An expression with the type that XPath gives it: nodes, a string, a number or a boolean."""


class Analyzer:
    """Makes queries of syntax trees; methods are named after what they return."""

    otherwise: ClassVar[str | None] = 'unsupported="slow" has lxml evaluate it'
    """What can be done about an expression of which no supported equivalent is known."""

    def __init__(self, text: str, namespaces: Mapping[str, str]) -> None:
        self.text = text
        self.namespaces = namespaces
        self.used: dict[str, str] = {}  # the prefixes that the text uses, with their URIs
        self.inside_predicate = 0

    def analyzed(
        self,
        syntax: Syntax,
        read: Callable[[Syntax], T],
        *,
        as_boolean: bool = True,
        with_hint: bool = True,
    ) -> T:
        """Read an expression by a method of this object; a refusal has a hint (``with_hint``).

        The hint is a supported expression that means the same. ``as_boolean``: the same truth, and
        the same nodes of a path, are enough.
        """
        try:
            with tree.bounded_recursion():
                return read(syntax)
        except UnsupportedExpression as error:
            refusal = error
        self.check(syntax)  # what is not XPath at all is said first
        if not with_hint:
            raise refusal from None
        # Only refusals need these, and they take 8 ms.
        from tamis.language.equivalents import equivalent  # noqa: PLC0415
        from tamis.language.events import is_filter  # noqa: PLC0415

        if is_filter(self.text):
            hint: str | None = FOR_EVENTS
        elif (found := equivalent(syntax, read, as_boolean=as_boolean)) is None:
            hint = "; ".join(filter(None, (refusal.hint, self.otherwise))) or None
        else:
            hint = f"write {found.text}"
            if not found.selects:
                hint += ", which matches the same documents, but selects nothing"
        raise UnsupportedExpression(refusal.message, self.text, refusal.position, hint) from None

    @contextmanager
    def in_predicate(self) -> Iterator[None]:
        self.inside_predicate += 1
        try:
            yield
        finally:  # also where it is refused: this object is asked about the whole then
            self.inside_predicate -= 1

    def query(self, syntax: Syntax) -> model.Query:
        expression = self.boolean(syntax)
        is_truth = isinstance(expression, model.Exists) and not _is_node_set(syntax)
        return model.Query(expression, tuple(sorted(self.used.items())), is_truth)

    def check(self, syntax: Syntax) -> None:
        """Refuse what no XPath 1.0 processor could evaluate."""
        for node in tree.walk(syntax):
            match node:
                case tree.Call():
                    self.check_call(node)
                case tree.StepSyntax() if node.has_name:
                    self.name_test(node)
                case tree.FilterExpression(primary=primary):
                    self.check_continued(primary)
                case tree.Operation(operators=(tree.Token(text="|"), *_), operands=operands):
                    for operand in operands:
                        self.check_node_set(operand, "'|'")
                case tree.Variable():
                    self.variable(node)

    # -- expressions -------------------------------------------------------------------------------

    def boolean(self, syntax: Syntax) -> Expression:
        if isinstance(syntax, tree.Operation) and syntax.operators[0].text in ("and", "or"):
            kind = model.And if syntax.operators[0].text == "and" else model.Or
            flat: list[Expression] = []
            for operand in map(self.boolean, syntax.operands):
                flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
            return kind(tuple(flat))
        return _as_boolean(self.operand(syntax))

    def operand(self, syntax: Syntax) -> Operand:
        match syntax:
            case tree.Number(value=value) | tree.String(value=value):
                return value
            case tree.Negation(odd=odd, operand=tree.Number(value=value)):
                return -value if odd else value
            case tree.Negation(position=position):
                self.unsupported("arithmetic is not supported", position)
            case tree.Variable():
                return Nodes((self.variable(syntax),))
            case tree.LocationPath():
                return Nodes((self.path(syntax),))
            case tree.FilterExpression():
                return Nodes((self.filtered(syntax),))
            case tree.Operation():
                return self.operation(syntax)
            case tree.Call():
                return self.call(syntax)

    def operation(self, syntax: tree.Operation) -> Operand:
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
        left, right = map(self.operand, syntax.operands)
        return self.comparison(operator.text, left, right, operator.position)

    def comparison(self, operator: str, left: Operand, right: Operand, position: int) -> Expression:
        if isinstance(left, str | float | Constant) and not isinstance(right, str | float):
            left, right = right, left
            operator = MIRRORED.get(operator, operator)
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

    def call(self, syntax: tree.Call) -> Operand:
        name, arguments = syntax.name, syntax.arguments
        self.check_call(syntax)
        match name:
            case "true" | "false":
                return Constant(name == "true")
            case "boolean":
                return self.boolean(arguments[0])
            case "not":
                return model.Not(self.boolean(arguments[0]))
            case "count":
                return model.Count(self.counted(arguments[0]))
            case "string-length":
                return model.StringLength(self.text_argument(syntax))
            case "normalize-space":
                return model.NormalizeSpace(self.text_argument(syntax))
            case "name" | "local-name":
                path = self.one_path(arguments[0], f"{name}()") if arguments else _HERE
                return model.NameOf(path, local=name == "local-name")
            case "contains" | "starts-with":
                text = self.text_argument(syntax)
                literal = arguments[1]
                if not isinstance(literal, tree.String):
                    message = f"the second argument of {name}() must be a string literal"
                    self.unsupported(message, literal.position)
                kind = model.Contains if name == "contains" else model.StartsWith
                return kind(text, literal.value)
        reason = ": how many siblings follow is not known when it is read" if name == "last" else ""
        message = f"{name}() is not supported{reason}"
        self.unsupported(message, syntax.position, _FUNCTION_ADVICE.get(name))

    def check_call(self, syntax: tree.Call) -> None:
        """Refuse what XPath 1.0 itself refuses: unknown functions, wrong arguments."""
        name, arguments = syntax.name, syntax.arguments
        if name not in _ARITY:
            from difflib import get_close_matches  # noqa: PLC0415 - for a message

            close = get_close_matches(name, _ARITY, 1, cutoff=0.8)
            hint = f"did you mean {close[0]}()?" if close else None
            self.syntax_error(f"XPath 1.0 has no function {name}()", syntax.position, hint)
        fewest, most = _ARITY[name]
        if not fewest <= len(arguments) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} or {most}"
            if most == _ANY_NUMBER:
                wanted = f"at least {fewest}"
            plural = "" if wanted == "1" else "s"
            message = f"{name}() takes {wanted} argument{plural}, {len(arguments)} given"
            self.syntax_error(message, syntax.position)
        if name in _NODE_SET_FUNCTIONS:
            for argument in arguments:
                self.check_node_set(argument, f"{name}()")

    def check_node_set(self, syntax: Syntax, taker: str) -> None:
        if not _is_node_set(syntax):
            self.syntax_error(f"{taker} takes a path", syntax.position)

    # -- functions of strings ----------------------------------------------------------------------

    def text_argument(self, call: tree.Call) -> model.StringFunction:
        """The first argument of a string function, or the context node."""
        if not call.arguments:
            return model.StringOf(_HERE)
        argument = call.arguments[0]
        operand = self.operand(argument)
        if isinstance(operand, Nodes):
            if len(operand.paths) > 1:
                self.unsupported(f"{call.name}() of a union is not supported", argument.position)
            return model.StringOf(operand.paths[0])
        if isinstance(operand, model.StringFunction):
            return operand
        message = f"the first argument of {call.name}() must be a path or a string function"
        self.unsupported(message, argument.position)

    def one_path(self, syntax: Syntax, taker: str) -> Path:
        nodes = self.operand(syntax)
        if not isinstance(nodes, Nodes) or len(nodes.paths) > 1:
            self.unsupported(f"{taker} of a union is not supported", syntax.position)
        return nodes.paths[0]

    def counted(self, syntax: Syntax) -> Path:
        path = self.one_path(syntax, "count()")
        if not all(step.axis in (Axis.CHILD, Axis.ATTRIBUTE) for step in path.steps):
            message = "count() is supported over child and attribute steps only"
            self.unsupported(message, syntax.position)
        return path

    # -- paths -------------------------------------------------------------------------------------

    def union(self, syntax: tree.Operation) -> tuple[Path, ...]:
        paths: dict[Path, None] = {}
        for operand in syntax.operands:
            self.check_node_set(operand, "'|'")
            nodes = self.operand(operand)
            assert isinstance(nodes, Nodes)
            paths.update(dict.fromkeys(nodes.paths))
        return tuple(paths)

    def path(self, syntax: tree.LocationPath) -> Path:
        if syntax.absolute and self.inside_predicate:
            self.unsupported("an absolute path in a predicate is not supported", syntax.position)
        return Path(syntax.absolute, tuple(map(self.step, syntax.steps)))

    def variable(self, syntax: tree.Variable) -> Path:
        """The nodes that a variable stands for, relative to the context: there is none."""
        self.unsupported("variables are not supported", syntax.position, "put its value there")

    def filtered(self, syntax: tree.FilterExpression) -> Path:
        """``(path)/more``: what needs no parentheses is accepted, the rest refused."""
        self.check_continued(syntax.primary)
        primary = self.operand(syntax.primary)
        assert isinstance(primary, Nodes)
        if syntax.predicates:
            message = "a predicate on an expression in parentheses is not supported"
            self.unsupported(message, syntax.predicates[0].position)
        if len(primary.paths) > 1:
            self.unsupported("a union that is continued is not supported", syntax.position)
        start = primary.paths[0]
        return Path(start.absolute, (*start.steps, *map(self.step, syntax.steps)))

    def check_continued(self, primary: Syntax) -> None:
        if isinstance(primary, tree.Call):
            self.check_call(primary)
        if not _is_node_set(primary):
            message = "only a path can be continued with / or a predicate"
            self.syntax_error(message, primary.position)

    def step(self, syntax: tree.StepSyntax) -> model.Step:
        axis = _SUPPORTED_AXES.get(syntax.axis)
        if axis is None:
            self.unsupported(f"the axis {syntax.axis}:: is not supported", syntax.position)
        test = self.node_test(syntax)
        with self.in_predicate():
            predicates = tuple(self.predicate(each, axis) for each in syntax.predicates)
        if axis is Axis.ATTRIBUTE and test is KindTest.TEXT:  # no attribute is a text node
            return model.Step(axis, KindTest.NODE, (*predicates, Constant(False)))
        return model.Step(axis, test, predicates)

    def node_test(self, syntax: tree.StepSyntax) -> model.NodeTest:
        if syntax.has_name:
            return self.name_test(syntax)
        if syntax.test not in ("node()", "text()"):
            self.unsupported(f"the node test {syntax.test} is not supported", syntax.position)
        return KindTest(syntax.test)

    def name_test(self, syntax: tree.StepSyntax) -> model.NameTest:
        if syntax.test.startswith("Q{"):
            written, _, local = syntax.test[2:].rpartition("}")
            namespace = " ".join(written.split())
            return model.NameTest(namespace, None if local == "*" else local, f"Q{{{namespace}}}")
        prefix, colon, local = syntax.test.rpartition(":")
        name = None if local == "*" else local
        if prefix == "*" or (name is None and not colon):
            return model.NameTest(None, name)
        if not colon:
            default = "" if syntax.axis in NOT_ELEMENTS else self.namespaces.get("", "")
            if default:
                self.used[""] = default
            return model.NameTest(default, name)
        uri = XML_NAMESPACE if prefix == "xml" else self.namespaces.get(prefix)
        if uri is None:
            hint = f'declare it: namespaces={{"{prefix}": "{USUAL_PREFIXES.get(prefix, "…")}"}}'
            self.syntax_error(f"the prefix '{prefix}' is not declared", syntax.position, hint)
        self.used[prefix] = uri
        return model.NameTest(uri, name, prefix)

    def predicate(self, syntax: Syntax, axis: Axis) -> Predicate:
        operand = self.operand(syntax)
        if isinstance(operand, float):
            if axis is not Axis.CHILD:
                message = f"a position on the {axis.value} axis is not supported"
                self.unsupported(message, syntax.position)
            whole = operand.is_integer() and operand > 0  # infinities are not integers
            return model.Position(int(operand)) if whole else Constant(False)
        if isinstance(operand, model.Count | model.StringLength):
            message = "a number that is not a literal is not supported as a position"
            hint = "a number in a predicate is a position: for a condition, compare it"
            self.unsupported(message, syntax.position, hint)
        return _as_boolean(operand)

    # -- refusals ----------------------------------------------------------------------------------

    def unsupported(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise UnsupportedExpression(message, self.text, position, hint)

    def syntax_error(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise SubscriptionSyntaxError(message, self.text, position, hint)


class ValueAnalyzer(Analyzer):
    """Also takes what only a whole document tells, outside of predicates."""

    otherwise = None

    def call(self, syntax: tree.Call) -> Operand:
        if syntax.name == "string" and not self.inside_predicate:
            self.check_call(syntax)
            return self.text_argument(syntax)
        return super().call(syntax)

    def counted(self, syntax: Syntax) -> Path:
        if self.inside_predicate:
            return super().counted(syntax)
        return self.one_path(syntax, "count()")


def _is_node_set(syntax: Syntax) -> bool:
    """Whether XPath's static types let the expression be a node set (variables may be one)."""
    match syntax:
        case tree.LocationPath() | tree.FilterExpression() | tree.Variable() | tree.Call(name="id"):
            return True
        case tree.Operation(operators=(tree.Token(text="|"), *_)):
            return True
    return False


def _as_boolean(operand: Operand) -> Expression:
    """XPath's boolean(): node sets and strings that are not empty, numbers but 0 and NaN."""
    match operand:
        case str() | float():
            return Constant(bool(operand))
        case Nodes(paths):
            return model.Exists(paths)
        case model.Count() | model.StringLength():
            return model.Compare("!=", operand, 0.0)
        case model.StringOf() | model.NameOf() | model.NormalizeSpace():
            return model.Compare("!=", operand, "")
    return operand


def _compare_value(operator: str, value: model.Value, literal: str | float) -> Expression:
    """A comparison in the one form that :class:`Compare` has for it."""
    is_of_numbers = isinstance(value, model.Count | model.StringLength)
    if isinstance(literal, str) and (is_of_numbers or operator not in ("=", "!=")):
        literal = xpath_number(literal)
        if isnan(literal):  # it is unequal to every number, and neither less nor more
            return Constant(operator == "!=")
    return model.Compare(operator, value, literal)


def _compare_boolean(operator: str, operand: Expression, literal: str | float | bool) -> Expression:
    if operator in ("=", "!="):
        return operand if bool(literal) == (operator == "=") else model.Not(operand)
    number = xpath_number(literal) if isinstance(literal, str) else float(literal)
    when_true, when_false = (compare(operator, value, number) for value in (1.0, 0.0))
    if when_true == when_false:
        return Constant(when_true)
    return operand if when_true else model.Not(operand)
