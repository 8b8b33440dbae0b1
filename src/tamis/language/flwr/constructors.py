"""XQuery read character by character: names, comments, and direct constructors.

Direct constructors are elements that are written as XML, with expressions in braces.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from typing import NoReturn

from tamis.core.errors import SubscriptionLimitError, SubscriptionSyntaxError, UnsupportedExpression
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.names import NOT_XML, USUAL_PREFIXES, XML_NAMESPACE, is_ncname
from tamis.language.flwr.model import Attribute, Constructor, Content, Enclosed, Flwr, Markup
from tamis.language.grammar import Token, read_token

_SPACE = lazy_pattern(r"[ \t\r\n]*")
_NAME = lazy_pattern(r"[^\s<>/='\"{}&;:()$,]+(?::[^\s<>/='\"{}&;:()$,]+)?")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_REFERENCE = lazy_pattern(r"&(?:#x(?P<hex>[0-9a-fA-F]+)|#(?P<decimal>[0-9]+)|(?P<name>[a-z]+));")
_TEXT = lazy_pattern(r"[^<{}&]+")


class Characters:
    """A text, and how far it was read."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.at = 0  # the index of what comes next
        self.nesting = 0  # how many elements, braces and parentheses are open

    @contextmanager
    def nested(self) -> Iterator[None]:
        self.nesting += 1
        bound = self.limits.subscription_nesting
        if self.nesting > bound:
            message = f"nested deeper than the limit subscription_nesting = {bound:,}"
            raise SubscriptionLimitError(message, self.text, self.at)
        try:
            yield
        finally:
            self.nesting -= 1

    def skip(self) -> None:
        self.at = self.after_space(self.at)

    def after_space(self, at: int) -> int:
        """The end of white space and comments."""
        while self.text.startswith("(:", at := self.after_blank(at)):
            at = self.after_comment(at)
        return at

    def after_comment(self, start: int) -> int:
        """The end of a comment ``(: … :)``, in which there may be others."""
        depth, at = 0, start
        while True:
            if self.text.startswith("(:", at):
                depth, at = depth + 1, at + 2
            elif self.text.startswith(":)", at):
                depth, at = depth - 1, at + 2
                if depth == 0:
                    return at
            elif at >= len(self.text):
                self.fail("the comment is not closed", start)
            else:
                at += 1

    def after_blank(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        assert found is not None
        return found.end()

    def skip_blank(self) -> None:
        self.at = self.after_blank(self.at)

    def word(self) -> str:
        found = _NAME.match(self.text, self.at)
        return found[0] if found else ""

    def name(self, expected: str) -> str:
        name = self.word()
        if not name or not all(map(is_ncname, name.split(":"))):
            self.fail(f"{expected}, found {self.found()}")
        self.at += len(name)
        return name

    def keyword(self, word: str) -> None:
        self.skip()
        if self.word() != word:
            self.fail(f"expected '{word}', found {self.found()}")
        self.at += len(word)

    def comes(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def takes(self, symbol: str) -> bool:
        """Whether a symbol comes, which is passed over then."""
        found = self.comes(symbol)
        self.at += len(symbol) if found else 0
        return found

    def expect(self, symbol: str) -> None:
        if not self.takes(symbol):
            self.fail(f"expected '{symbol}', found {self.found()}")

    def take(self, text: str) -> None:
        self.at += len(text)
        self.skip()

    def enter_call(self, name: str) -> None:
        self.take(name)
        self.expect("(")
        self.skip()

    def leave_call(self) -> None:
        self.skip()
        self.expect(")")

    def string(self, what: str) -> str:
        token = self.token(self.at)
        if token.kind != "string":
            self.fail(f"expected {what} as a string, found {self.found()}")
        self.at = token.end
        self.skip()
        return token.text[1:-1]

    def token(self, at: int) -> Token:
        """XPath's token at an index; what cannot be one is the end."""
        try:
            return read_token(self.text, at)
        except SubscriptionSyntaxError as error:
            return Token("end", self.text[at : at + 1], error.position or at)

    def is_call(self, word: str) -> bool:
        return self.text.startswith("(", self.after_space(self.at + len(word)))

    def found(self) -> str:
        shown = self.word() or self.text[self.at : self.at + 1]
        return f"'{shown[:39]}'" if shown else "the end"

    def unsupported(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise UnsupportedExpression(message, self.text, position, hint)

    def fail(self, message: str, position: int | None = None, hint: str | None = None) -> NoReturn:
        at = self.at if position is None else position
        raise SubscriptionSyntaxError(message, self.text, at, hint)


class Constructors(Characters):
    """Reads constructors; what stands in braces is left to subclasses."""

    def __init__(self, text: str, namespaces: Mapping[str, str], limits: Limits) -> None:
        super().__init__(text, limits)
        self.scope = {"": "", **namespaces}  # prefix → URI, of all that are declared here
        # Those of them that constructed elements around this place declare in the output.
        self.carried: dict[str, str] = {}

    @abstractmethod
    def enclosed(self) -> Enclosed | Flwr:
        """Read what is in braces in the content of an element, from the opening one on."""

    @abstractmethod
    def enclosed_in_value(self) -> Enclosed:
        """Read what is in braces in the value of an attribute."""

    def element(self) -> Constructor:
        self.at += 1
        with self.nested():
            start = self.at
            name = self.name("expected the name of an element")
            outer = self.scope, self.carried
            self.scope, self.carried = dict(self.scope), dict(self.carried)
            declared: dict[str, str] = {}
            attributes = tuple(self.attributes(declared))
            self.carry(name, start, declared)
            for attribute, position in attributes:
                if ":" in attribute.name:
                    self.carry(attribute.name, position, declared)
            seen: set[tuple[str, str]] = set()
            for attribute, position in attributes:
                uri, local = expanded = expanded_name(attribute.name, self.scope)
                if expanded in seen:
                    message = f"the attribute '{local}' of the namespace {uri} is there twice"
                    self.fail(message, position)
                seen.add(expanded)
            content = self.inside(name)
            self.scope, self.carried = outer
        found = tuple(attribute for attribute, _ in attributes)
        return Constructor(name, tuple(sorted(declared.items())), found, content)

    def carry(self, name: str, position: int, declared: dict[str, str]) -> None:
        """Have an element declare the prefix of a name, unless one around it does."""
        prefix = name.rpartition(":")[0]
        if prefix == "xml":
            return
        if prefix not in self.scope:
            hint = f'declare it: xmlns:{prefix}="{USUAL_PREFIXES.get(prefix, "URI")}" in a tag, '
            hint += "or declare namespace at the beginning"
            self.fail(f"the prefix '{prefix}' is not declared", position, hint)
        self.declare(prefix, self.scope[prefix], declared)

    def attributes(self, declared: dict[str, str]) -> Iterator[tuple[Attribute, int]]:
        """The attributes of a tag, and where they are; declarations of namespaces apply at once."""
        seen: set[str] = set()
        while True:
            before = self.at
            self.skip_blank()
            if self.text[self.at : self.at + 1] in ("/", ">"):
                return
            start = self.at
            name = self.name("expected an attribute, '/>' or '>'")
            if start == before:
                self.fail("expected white space before the attribute", start)
            if name in seen:
                self.fail(f"the attribute '{name}' is there twice", start)
            seen.add(name)
            self.skip_blank()
            self.expect("=")
            self.skip_blank()
            value = self.value()
            prefix, _, local = name.rpartition(":")
            if prefix == "xmlns" or name == "xmlns":
                if not all(isinstance(part, str) for part in value):
                    self.fail("the URI of a namespace must be constant", start)
                declared_prefix, uri = local if prefix else "", "".join(map(str, value))
                if declared_prefix in ("xml", "xmlns") or (declared_prefix and not uri):
                    self.fail(f"the prefix {declared_prefix!r} cannot be declared so", start)
                self.scope[declared_prefix] = uri
                self.declare(declared_prefix, uri, declared)
            else:
                yield Attribute(name, value), start

    def declare(self, prefix: str, uri: str, declared: dict[str, str]) -> None:
        if self.carried.get(prefix, "") != uri:
            declared[prefix] = self.carried[prefix] = uri

    def value(self) -> tuple[str | Enclosed, ...]:
        quote = self.text[self.at : self.at + 1]
        if quote not in ("'", '"'):
            self.fail(f"expected the value of an attribute in quotes, found {self.found()}")
        start = self.at
        self.at += 1
        parts: list[str | Enclosed] = []
        while True:
            if self.at >= len(self.text):
                self.fail("the value of the attribute is not closed", start)
            character = self.text[self.at]
            if self.takes(quote * 2):
                parts.append(quote)
            elif self.takes(quote):
                return _merged(parts)
            elif character == "{" and not self.comes("{{"):
                parts.append(self.enclosed_in_value())
            elif character == "<":
                self.fail("'<' cannot stand in the value of an attribute", hint="write &lt;")
            else:
                part = self.characters()
                parts.append(part if part != character else re.sub("[\t\r\n]", " ", part))

    def inside(self, name: str) -> tuple[Content, ...]:
        """What follows the attributes of a tag, to the end of the element."""
        if self.takes("/>"):
            return ()
        self.expect(">")
        start = self.at
        parts: list[Content] = []
        is_blank = True  # what is pending is white space as it is written, and nothing else
        pending = ""
        while not self.takes("</"):
            if self.at >= len(self.text):
                self.fail(f"the element <{name}> is not closed", start - 1)
            written = self.written_text()
            if written is None:
                parts += [self.part()] if is_blank else [pending, self.part()]
                pending, is_blank = "", True
            else:
                pending += written[0]
                is_blank &= written[1]
        parts += [] if is_blank else [pending]
        end = self.at
        if self.name("expected the name of an element") != name:
            self.fail(f"expected </{name}>", end)
        self.skip_blank()
        self.expect(">")
        return tuple(parts)

    def written_text(self) -> tuple[str, bool] | None:
        """Some constant text, and whether XQuery strips it between tags; None for all else."""
        if self.comes("<![CDATA["):
            return self.up_to("]]>", "<![CDATA["), False
        if self.comes("<") or (self.comes("{") and not self.comes("{{")):
            return None
        found = _TEXT.match(self.text, self.at)
        if found is None:
            return self.characters(), False
        self.at = found.end()
        text = re.sub("\r\n?", "\n", found[0])
        return text, not text.strip(" \t\r\n")

    def part(self) -> Content:
        start = self.at
        if self.text.startswith("<!--", start):
            comment = self.up_to("-->", "<!--")
            if "--" in comment or comment.endswith("-"):
                self.fail("'--' cannot stand in a comment", start)
            return Markup(f"<!--{comment}-->")
        if self.text.startswith("<?", start):
            instruction = self.up_to("?>", "<?")
            target = re.split(r"\s", instruction, maxsplit=1)[0]
            if not is_ncname(target) or target.lower() == "xml":
                self.fail("expected the name of a processing instruction", start)
            return Markup(f"<?{instruction}?>")
        if self.text[start] == "<":
            return self.element()
        return self.enclosed()

    def up_to(self, end: str, beginning: str) -> str:
        start = self.at + len(beginning)
        stop = self.text.find(end, start)
        if stop < 0:
            self.fail(f"'{beginning}' is not closed by '{end}'")
        self.at = stop + len(end)
        return self.text[start:stop]

    def characters(self) -> str:
        """One character of text, which may be written as a reference or a double brace."""
        character = self.text[self.at]
        if character in "{}" and not self.comes(character * 2):
            hint = f"write {character * 2}"
            if character == "}":
                hint += "; or is an element before it not closed?"
            self.fail(f"'{character}' does not stand for itself", hint=hint)
        if character != "&":
            self.at += 2 if character in "{}" else 1
            return character
        found = _REFERENCE.match(self.text, self.at)
        if found is None or (found["name"] and found["name"] not in _ENTITIES):
            self.fail("'&' begins no reference that XQuery knows", hint="write &amp; for & itself")
        start, self.at = self.at, found.end()
        if found["name"]:
            return _ENTITIES[found["name"]]
        number = int(found["hex"], 16) if found["hex"] else int(found["decimal"])
        if number > 0x10FFFF or NOT_XML.match(chr(number)):
            self.fail(f"the character {found[0]} is in no XML document", start)
        return chr(number)


def expanded_name(name: str, prefixes: Mapping[str, str]) -> tuple[str, str]:
    """The namespace and the local name of an attribute, as it is written."""
    prefix, colon, local = name.rpartition(":")
    if not colon:
        return "", local
    return XML_NAMESPACE if prefix == "xml" else prefixes[prefix], local


def _merged(parts: list[str | Enclosed]) -> tuple[str | Enclosed, ...]:
    merged: list[str | Enclosed] = []
    for is_text, group in groupby(parts, lambda part: isinstance(part, str)):
        some = list(group)
        merged += ["".join(map(str, some))] if is_text else some
    return tuple(merged)
