"""Bytes that mean something in XML."""

from __future__ import annotations

from tamis.core.kernel import inlined

LT, AMP, BRACKET_OPEN, BRACKET, SLASH, GT, EQUALS = (ord(c) for c in "<&[]/>=")
BANG, QUESTION, HASH, SEMICOLON, COLON, DASH, DOT = (ord(c) for c in "!?#;:-.")
QUOTE, APOSTROPHE, SPACE, TAB, NEWLINE, RETURN = (ord(c) for c in "\"' \t\n\r")
EMPTY_END = SLASH | GT << 8
PUBLIC = tuple(ord(c) for c in "=?!#@$_%")


@inlined
def is_space(character: int) -> bool:
    """Whether a byte is whitespace."""
    return character in (SPACE, NEWLINE, TAB, RETURN)


@inlined
def is_public_character(character: int) -> bool:
    """Whether a character may be in a public identifier."""
    letter = character | 0x20
    if ord("a") <= letter <= ord("z") or ord("'") <= character <= ord(";"):
        return True  # letters, digits, '()*+,-./:;
    return character in (SPACE, RETURN, NEWLINE, *PUBLIC)
