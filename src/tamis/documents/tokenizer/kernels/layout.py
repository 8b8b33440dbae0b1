"""What the kernels and their callers share: the state, and the arrays that it knows of.

The state is one array of integers: first what the caller sets, where the scan is and what it asks;
then for each array of ``Names``, ``Work``, ``Output`` and ``Parts`` its address and its length. To
hand these arrays over at each call would take longer than the work. So each array is listed once,
in its tuple. The tuple's namesake in capitals has the fields: ``int32s(state, OUT.tags)`` is the
array ``Output.tags``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import inlined
from tamis.core.kernel.library import address_of
from tamis.core.kernel.record import fields, register

Words = NDArray[np.uint64]

PADDING = 256
"""Bytes of NUL behind each document, and the most that is read beyond a place without looking."""
SLOT_BITS = 16  # there are so many slots for names, as a power of two
NAME_MAX = 0xFFFFFF  # bytes of a name
CONTEXTS_MAX = 64  # contexts of records that are known at a time

# What ``scan`` returns.
(DONE, MORE, ENOUGH, NEW_NAME, NEW_SCOPE, NEW_CONTEXT, FULL_EVENTS, FULL_ATTRIBUTES, FULL_VALUES,
 FULL_TEXTS, FULL_TEXT_VALUES, FULL_MISC, FULL_MISC_VALUES, DECLINE) = range(14)  # fmt: skip

# Kinds of names; part of the key of a name.
ELEMENT, ATTRIBUTE, TARGET = range(1, 4)
# What is to be done about a name.
READ_TEXT, READ_VALUE, IS_RECORD = 1, 2, 4
# Columns of Names.table.
HEAD, NECK, KEY, ANSWER, NAME_COLUMNS = range(5)
# Columns of Names.scopes.
PARENT, SPELLED_FROM, SPELLED_TO, SCOPE, SCOPE_COLUMNS = range(5)
# Columns of Output.contexts; from CONTEXT_STACK on the open elements, as in the stack.
CONTEXT_DEPTH, CONTEXT_SCOPE, CONTEXT_STACK = range(3)

# Fields of the state, up to where its arrays begin. First what the caller sets; then where the scan
# is; then what it asks.
(IN_RECORDS, WITH_NAMESPACE, IS_FINAL, WITH_PREFIXES, WITH_OFFSETS, WITH_MISC, DEPTH_MAX,
 ATTRIBUTES_MAX, RECORDS_MAX, EVENTS_MAX, DOCUMENTS_MAX, IS_STANDALONE, IS_EXTERNAL,
 HAS_DOCTYPE, IS_REFUSED, SERIAL,
 LEFT_TAG, LEFT_AT, LEFT_COUNT, LEFT_BYTES, LEFT_ALLOWED, LEFT_SCOPE,
 POSITION, DOCUMENT, DEPTH, CURRENT_SCOPE, ROOT, IS_EMITTING, FLOOR, TEXT_DEPTH,
 EVENTS, ATTRIBUTES, VALUE_BYTES, TEXTS, TEXT_BYTES, MISC, MISC_BYTES, TEXT_FROM, DOCUMENTS,
 EVENTS_MARK, ATTRIBUTES_MARK, VALUE_BYTES_MARK, TEXTS_MARK, TEXT_BYTES_MARK, MISC_MARK,
 MISC_BYTES_MARK, SKIPPED, FIRST_SKIPPED, SKIPPED_MARK, RECORD_FROM, STOPPED_AT, CONTEXTS, CONTEXT,
 DOCTYPE_FROM, DOCTYPE_TO,
 ASKED_AT, ASKED_LENGTH, ASKED_KIND, ASKED_SLOT, ASKED_SCOPE, INDEXED, CARRY, IS_FAULTY,
 BODY, TAIL, SWITCH, FIRST_DOCUMENT, MULTIPLIER, ARRAYS) = range(69)  # fmt: skip

# Values of ROOT.
NO_ROOT, ROOT_IS_OPEN, ROOT_IS_CLOSED = range(3)


class Names(NamedTuple):
    """Hash tables of what was met before, to which only the caller adds; and room for work.

    Attributes:
        table: uint64[NAME_COLUMNS << SLOT_BITS], rows, with open addressing. HEAD and NECK, the
            first 16 bytes of a name as it is written; KEY, its length, kind and scope (0: nothing
            is here); ANSWER, its id, and from bit 32 on what is to be done about it.
        offsets: int64[1 << SLOT_BITS]; where a name of over 16 bytes is in ``spelled``, whole.
        prefixes: int32[1 << SLOT_BITS]; the id of its prefix, -1 without one.
        scopes: int64[SCOPE_COLUMNS * 2**j], rows; namespace declarations as they are written, in
            ``spelled``, the scope that they are made in, and the one that they make (0: nothing is
            here).
        stamps: int64; by id of a name, the last element that had it as an attribute.
        declarations: uint8; where the declarations of a tag are put together.
        record: uint8; the tag of records, and 8 bytes more.
        multiplier: uint64[1]; of the hash. Odd; 0 makes all names collide.
    """

    table: Words
    offsets: Int64
    prefixes: Int32
    spelled: Bytes
    scopes: Int64
    stamps: Int64
    declarations: Bytes
    record: Bytes
    multiplier: Words


class Work(NamedTuple):
    """What the kernels need to work, and keep from call to call.

    ``stack`` has the open elements, from 1: the slot of the name, and from bit 32 on the scope that
    the element is in. ``structure``, int64[INDEX_SIZE], has the places of structure in a window.
    """

    stack: Int64
    structure: Int64


class Output(NamedTuple):
    """What becomes a ``DocumentBatch``; see there. The buffers are larger than what is in them.

    Attributes:
        record_starts, record_ends: int64; the bytes of each record, in ``Text.data``.
        record_contexts: int32; the number of the context that each is in.
        contexts: int64[CONTEXTS_MAX * c], rows: how many elements are open around records, the
            scope inside them, and these elements, as in the stack. Only the caller adds to them.
        declined: uint8[d]; whether a document was left to libexpat.
        skipped, first_skipped: int64[d]; how many references to entities that are not declared were
            left out, and where the first one is.
    """

    tags: Int32
    prefixes: Int32
    offsets: Int64
    attribute_event: Int64
    attribute_name: Int32
    attribute_prefixes: Int32
    value_start: Int64
    value_end: Int64
    attribute_values: Bytes
    text_event: Int64
    text_start: Int64
    text_end: Int64
    text_values: Bytes
    misc_event: Int64
    misc_text: Int64
    misc_name: Int32
    misc_start: Int64
    misc_end: Int64
    misc_values: Bytes
    document_starts: Int64
    misc_starts: Int64
    record_starts: Int64
    record_ends: Int64
    record_contexts: Int32
    contexts: Int64
    declined: Bytes
    skipped: Int64
    first_skipped: Int64


class Parts(NamedTuple):
    """The documents that a text consists of.

    ``origins``, ``starts`` and ``ends`` are where in ``Text.data`` each begins, where its XML
    declaration ends, and where it ends itself; ``standalone`` is whether the declaration says so.
    """

    origins: Int64
    starts: Int64
    ends: Int64
    standalone: Bytes


class Text(NamedTuple):
    """The bytes of documents, of which the first has the number ``first``.

    From ``switch`` on, ``data`` is not read, but ``tail`` instead: the last bytes of ``data``, from
    ``tail_from`` on, and ``PADDING`` of NUL.
    """

    data: Bytes
    tail: Bytes
    tail_from: int
    switch: int
    first: int
    parts: Parts


NAMES = fields(Names, ARRAYS)
WORK = fields(Work, NAMES[-1] + 2)
OUT = fields(Output, WORK[-1] + 2)
PARTS = fields(Parts, OUT[-1] + 2)
STATES = PARTS[-1] + 2


def register_text(state: Int64, text: Text) -> None:
    """Tell the kernels where documents are."""
    state[BODY] = address_of(text.data)
    state[TAIL] = address_of(text.tail) - text.tail_from
    state[SWITCH] = text.switch
    state[FIRST_DOCUMENT] = text.first
    state[DOCUMENTS_MAX] = text.first + len(text.parts.ends)
    register(state, PARTS.origins, text.parts)


@inlined
def address(state: Int64, place: int) -> int:
    """The address of a place; good for half of ``PADDING``."""
    return (state[BODY] if place < state[SWITCH] else state[TAIL]) + place


@inlined
def length_of(state: Int64, array: int) -> int:
    """The length of an array, by its field."""
    return state[array + 1]


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
