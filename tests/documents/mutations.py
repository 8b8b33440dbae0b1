"""Spoils documents a little, the same way each time for the same seed.

A document is taken apart into tokens once. *Gentle* changes are made to tokens, at places where
they keep it well-formed, mostly; *rough* ones to bytes, anywhere. With both, about half of the
documents stay well-formed, so that they test what is made of them; the others are close to it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from tests.documents.pieces import ANYWHERE, ATTRIBUTES, CONTENT, EPILOG, PROLOG, SPACES

T = TypeVar("T")

_GENTLE_SHARE = 0.6
_PROLOG_SHARE = 0.1
_GOOD_SHARE = 0.8  # of the seeds that are drawn: spoiling a bad one seldom tells more
_LENGTH_MAX = 700

_TOKENS = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
    rb"""|<(?:[^>"']|"[^"]*"|'[^']*')*>|[^<]+|<""",
    re.DOTALL,
)
_START = re.compile(rb"<([^\s<>/!?=\"']+)")


class Document(NamedTuple):
    """A seed, taken apart.

    Attributes:
        gaps: tokens inside the root, and its end: content may be put before them.
        elements: (first token, last token) of elements, the root first if there is any.
        texts: tokens of character data.
        tags: start tags, empty-element tags included.
        ends: all tags.
    """

    tokens: list[bytes]
    gaps: list[int]
    elements: list[tuple[int, int]]
    texts: list[int]
    tags: list[int]
    ends: list[int]


def taken_apart(data: bytes) -> Document:
    """The tokens of a document, well-formed or not."""
    tokens = _TOKENS.findall(data)
    document = Document(tokens, [], [], [], [], [])
    open_tags: list[int] = []
    for index, token in enumerate(tokens):
        if open_tags:
            document.gaps.append(index)
        if token.startswith(b"</"):
            document.ends.append(index)
            if open_tags:
                document.elements.append((open_tags.pop(), index))
        elif _START.match(token):
            document.tags.append(index)
            document.ends.append(index)
            if token.endswith(b"/>"):
                document.elements.append((index, index))
            else:
                open_tags.append(index)
        elif not token.startswith(b"<") and open_tags:
            document.texts.append(index)
    document.elements.sort()
    return document


class Mutator:
    """Makes documents from seeds.

    Args:
        good: well-formed documents to start from.
        bad: others.
        key: two mutators with the same seeds and key make the same documents.
    """

    def __init__(self, good: Sequence[Document], bad: Sequence[Document], key: str) -> None:
        self.good = good
        self.bad = bad or good
        self.draw = random.Random(key).random  # a method of which Python promises stability
        self.gentle_changes: tuple[Callable[[Document, list[bytes]], None], ...] = (
            *[self.put_content] * 5,
            *[self.add_attribute] * 3,
            self.put_space,
            self.repeat_element,
            self.repeat_element,
            self.splice_element,
            self.leave_out_element,
            self.wrap_element,
            self.rename_element,
            *[self.put_into_text] * 2,
        )
        self.rough_changes: tuple[Callable[[bytes], bytes], ...] = (
            *[self.put_anything] * 4,
            self.flip_bit,
            self.flip_bit,
            self.change_byte,
            self.leave_out,
            self.repeat,
            self.swap,
            self.splice,
            self.cut,
            self.change_case,
        )

    def below(self, bound: int) -> int:
        return int(self.draw() * bound)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.draw() * len(choices))]

    def seed(self) -> Document:
        return self.one_of(self.good if self.draw() < _GOOD_SHARE else self.bad)

    def document(self) -> bytes:
        """The next document."""
        seed = self.seed()
        if self.draw() < _GENTLE_SHARE:
            return self.gently(seed)
        data = self.gently(seed) if self.draw() < 0.5 else b"".join(seed.tokens)
        for _ in range(1 + self.below(3)):
            data = self.one_of(self.rough_changes)(data)
        return data[:_LENGTH_MAX]

    # -- gentle changes: to tokens, whose number stays so that what is known of them holds ------

    def gently(self, seed: Document) -> bytes:
        tokens = seed.tokens.copy()
        if seed.tags:
            for _ in range(1 + self.below(3)):
                self.one_of(self.gentle_changes)(seed, tokens)
        if self.draw() < _PROLOG_SHARE:
            tokens.insert(0, self.one_of(PROLOG))
        if self.draw() < _PROLOG_SHARE:
            tokens.append(self.one_of(EPILOG))
        return b"".join(tokens)

    def put_content(self, seed: Document, tokens: list[bytes]) -> None:
        if not seed.gaps:
            return self.add_attribute(seed, tokens)
        index = self.one_of(seed.gaps)
        tokens[index] = self.one_of(CONTENT) + tokens[index]
        return None

    def add_attribute(self, seed: Document, tokens: list[bytes]) -> None:
        self.put_before_end(tokens, self.one_of(seed.tags), self.one_of(ATTRIBUTES))

    def put_space(self, seed: Document, tokens: list[bytes]) -> None:
        self.put_before_end(tokens, self.one_of(seed.ends), self.one_of(SPACES))

    def put_before_end(self, tokens: list[bytes], index: int, piece: bytes) -> None:
        token = tokens[index]
        end = -2 if token.endswith(b"/>") else -1
        tokens[index] = token[:end] + piece + token[end:]

    def repeat_element(self, seed: Document, tokens: list[bytes]) -> None:
        if len(seed.elements) > 1:
            first, last = seed.elements[1 + self.below(len(seed.elements) - 1)]
            tokens[first] = b"".join(tokens[first : last + 1]) + tokens[first]

    def splice_element(self, seed: Document, tokens: list[bytes]) -> None:
        other = self.seed()
        if seed.gaps and other.elements:
            first, last = self.one_of(other.elements)
            index = self.one_of(seed.gaps)
            tokens[index] = b"".join(other.tokens[first : last + 1]) + tokens[index]

    def leave_out_element(self, seed: Document, tokens: list[bytes]) -> None:
        if len(seed.elements) > 1:
            first, last = seed.elements[1 + self.below(len(seed.elements) - 1)]
            tokens[first : last + 1] = [b""] * (last + 1 - first)

    def wrap_element(self, seed: Document, tokens: list[bytes]) -> None:
        if seed.elements:
            first, last = self.one_of(seed.elements)
            attribute = self.one_of(ATTRIBUTES)
            tokens[first] = b"<w" + attribute + b">" + tokens[first]
            tokens[last] += b"</w>"

    def rename_element(self, seed: Document, tokens: list[bytes]) -> None:
        if not seed.elements:
            return
        first, last = self.one_of(seed.elements)
        name = _START.match(tokens[first])
        if name and (first == last or tokens[last].startswith(b"</" + name[1])):
            end = name.end()
            suffix = self.one_of((b"1", b"-", b".x", b"_" * 40, "é".encode(), b"abcdefgh"))
            tokens[first] = tokens[first][:end] + suffix + tokens[first][end:]
            if first != last:
                tokens[last] = tokens[last][: end + 1] + suffix + tokens[last][end + 1 :]

    def put_into_text(self, seed: Document, tokens: list[bytes]) -> None:
        if seed.texts:
            index = self.one_of(seed.texts)
            place = self.below(len(tokens[index]))
            tokens[index] = tokens[index][:place] + self.one_of(CONTENT) + tokens[index][place:]

    # -- rough changes: to bytes -------------------------------------------------------------------

    def put_anything(self, data: bytes) -> bytes:
        place = self.below(len(data) + 1)
        return data[:place] + self.one_of(ANYWHERE) + data[place:]

    def flip_bit(self, data: bytes) -> bytes:
        return self.with_byte(data, lambda byte: byte ^ 1 << self.below(8))

    def change_byte(self, data: bytes) -> bytes:
        return self.with_byte(data, lambda _: self.below(256))

    def change_case(self, data: bytes) -> bytes:
        return self.with_byte(data, lambda byte: byte ^ 32 if chr(byte).isalpha() else byte)

    def with_byte(self, data: bytes, change: Callable[[int], int]) -> bytes:
        if not data:
            return data
        place = self.below(len(data))
        return data[:place] + bytes((change(data[place]),)) + data[place + 1 :]

    def span(self, data: bytes) -> tuple[int, int]:
        """Mostly a short one."""
        first = self.below(len(data) + 1)
        return first, first + int(self.draw() ** 3 * 40) + 1

    def leave_out(self, data: bytes) -> bytes:
        first, last = self.span(data)
        return data[:first] + data[last:]

    def repeat(self, data: bytes) -> bytes:
        first, last = self.span(data)
        return data[:last] + data[first:last] * (1 + self.below(3)) + data[last:]

    def swap(self, data: bytes) -> bytes:
        tokens = _TOKENS.findall(data)
        if len(tokens) > 1:
            first, second = self.below(len(tokens)), self.below(len(tokens))
            tokens[first], tokens[second] = tokens[second], tokens[first]
        return b"".join(tokens)

    def splice(self, data: bytes) -> bytes:
        other = b"".join(self.seed().tokens)
        return data[: self.below(len(data) + 1)] + other[self.below(len(other) + 1) :]

    def cut(self, data: bytes) -> bytes:
        place = self.below(len(data) + 1)
        return data[:place] if self.draw() < 0.7 else data[place:]
