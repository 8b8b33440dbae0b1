"""Reading XQuery character by character: names, white space and comments, and messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from tamis.core.errors import SubscriptionLimitError, SubscriptionSyntaxError, UnsupportedExpression
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.names import is_ncname
from tamis.language.grammar import Token, read_token

_SPACE = lazy_pattern(r"[ \t\r\n]*")
_NAME = lazy_pattern(r"[^\s<>/='\"{}&;:()$,]+(?::[^\s<>/='\"{}&;:()$,]+)?")


class Characters:
    """A text, and how far it was read.

    Attributes:
        at: the index of what comes next.
        nesting: how many elements, braces and parentheses are open.
    """

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.at = 0
        self.nesting = 0

    @contextmanager
    def nested(self) -> Iterator[None]:
        self.nesting += 1
        bound = self.limits.subscription_nesting
        if self.nesting > bound:
            raise SubscriptionLimitError(
                f"nested deeper than the limit subscription_nesting = {bound:,}", self.text, self.at
            )
        try:
            yield
        finally:
            self.nesting -= 1

    def skip(self) -> None:
        """Pass over white space and comments."""
        self.at = self.after_space(self.at)

    def after_space(self, at: int) -> int:
        while True:
            found = _SPACE.match(self.text, at)
            assert found is not None
            at = found.end()
            if not self.text.startswith("(:", at):
                return at
            at = self.after_comment(at)

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

    def skip_space(self) -> None:
        found = _SPACE.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    def word(self) -> str:
        """The name that is here, or an empty string."""
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

    def expect(self, symbol: str) -> None:
        if not self.text.startswith(symbol, self.at):
            self.fail(f"expected '{symbol}', found {self.found()}")
        self.at += len(symbol)

    def token(self) -> Token:
        try:
            return read_token(self.text, self.at)
        except SubscriptionSyntaxError:
            return Token("end", self.text[self.at : self.at + 1], self.at)

    def is_call(self, word: str) -> bool:
        """Whether a parenthesis follows a word that is here."""
        return self.text.startswith("(", self.after_space(self.at + len(word)))

    def found(self) -> str:
        """What stands here, for messages."""
        shown = self.word() or self.text[self.at : self.at + 1]
        return f"'{shown[:39]}'" if shown else "the end"

    # -- refusals ----------------------------------------------------------------------------------

    def unsupported(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise UnsupportedExpression(message, self.text, position, hint)

    def syntax(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise SubscriptionSyntaxError(message, self.text, position, hint)

    def fail(self, message: str, position: int | None = None, hint: str | None = None) -> NoReturn:
        self.syntax(message, self.at if position is None else position, hint)
