"""Names of attributes: of what an event has at its top, and of what is derived from that.

Engines know names as strings, and nothing of what they mean. A name that begins with a *mark* is of
an attribute that the encoder of events adds:

=============  =====================================================================================
``FOLDED``     the string of an attribute, without case
``NULL``       exists where an attribute is null
``PATH``       what is inside of objects and lists; where the first is none, an attribute with dots
``ELEMENTS``   exists where some element of a list is as a condition says
``ADDRESS``    the bits of the internet address that a string is: see ``language.networks``
=============  =====================================================================================

``EVERY`` is the path of all values of an event, wherever they are: elements of one list. As an
attribute it joins all strings of the event. ``SEPARATOR`` follows each string; a separator inside a
string becomes ``INSTEAD``. A text without these two characters occurs in the joined string exactly
where it occurs in one of the strings.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

FOLDED, NULL, PATH, ELEMENTS, ADDRESS = "\0", "\1", "\2", "\3", "\6"
_INDEX = "\4"
ITSELF = "\5"
"""The name of an element in conditions on it."""
EVERY = "\7"
SEPARATOR, INSTEAD = "\0", "\1"
MARKS = (FOLDED, NULL, PATH, ELEMENTS, ADDRESS, _INDEX, ITSELF, EVERY)

KEYWORDS = frozenset("prefix suffix contains and or not in exists between true false null".split())
NAME = r"[^\W\d](?:[\w.:-]*\w)?"
"""What is a path without backquotes, but for the words of the language."""
_BARE = re.compile(r"[^\W\d](?:[\w:-]*\w)?")

Path = tuple[str | int, ...]
"""Names and positions, from the top of an event on."""


class Attribute(NamedTuple):
    """What a name means.

    Attributes:
        mark: FOLDED, NULL, PATH, ELEMENTS or ADDRESS; "" for an attribute as it is.
        path: where it is; one name at the top of events.
        condition: of ELEMENTS, what stands behind the path and ``[]``.
    """

    mark: str
    path: Path
    condition: str = ""


def folded_name(name: str) -> str:
    """The name that the folded strings of an attribute have."""
    return FOLDED + name


def null_name(name: str) -> str:
    """The name that exists where an attribute is null."""
    return NULL + name


def path_name(path: Path) -> str:
    r"""The name of what is at a path.

    >>> path_name(("a",)), attribute_of(path_name(("a", 0, "b")))
    ('a', Attribute(mark='\x02', path=('a', 0, 'b'), condition=''))
    """
    if len(path) == 1:
        return str(path[0])
    return PATH + PATH.join(f"{_INDEX}{x}" if isinstance(x, int) else x for x in path)


def elements_name(path: Path, condition: str) -> str:
    """The name that exists where some element at a path is as a condition says."""
    return f"{ELEMENTS}{path_name(path)}{ELEMENTS}{condition}"


def address_name(name: str) -> str:
    """The name that the bits of the address in a string have."""
    return ADDRESS + name


@lru_cache(1 << 16)
def attribute_of(name: str) -> Attribute:
    """What a name means."""
    if name[:1] in (FOLDED, NULL, ADDRESS):
        return Attribute(name[0], _path_of(name[1:]))
    if name[:1] == ELEMENTS:
        own, _, condition = name[1:].partition(ELEMENTS)
        return Attribute(ELEMENTS, _path_of(own), condition)
    path = _path_of(name)
    return Attribute(PATH if len(path) > 1 or name == EVERY else "", path)


def _path_of(name: str) -> Path:
    if name[:1] != PATH:
        return (name,)
    parts = name[1:].split(PATH)  # of events too, which may have any names
    return tuple(int(x[1:]) if x[:1] == _INDEX and x[1:].isdecimal() else x for x in parts)


def plain_name(name: str) -> str:
    """The name of what a name is about, without conditions on it: an attribute, or a path."""
    attribute = attribute_of(name)
    return path_name(attribute.path)


def print_name(name: str) -> str:
    """A name as it is written; parts that would be read as something else are in backquotes.

    >>> print_name("a b"), print_name(path_name(("a", "in.b", 3))), print_name(folded_name("in"))
    ('`a b`', 'a.`in.b`[3]', '`in`')
    """
    attribute = attribute_of(name)
    written = ""
    for part in attribute.path:
        if isinstance(part, int):
            written += f"[{part}]"
            continue
        is_bare = _BARE.fullmatch(part) and (part not in KEYWORDS or written)
        text = part if is_bare else "`" + part.replace("`", "``") + "`"
        text = {ITSELF: ".", EVERY: "*"}.get(part, text)
        written += f".{text}" if written else text
    if attribute.mark == ELEMENTS and attribute.path != (EVERY,):
        written += "[]"
    return written + attribute.condition
