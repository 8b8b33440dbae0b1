"""What to write instead of an expression that is refused: one that means the same.

Each rule keeps what an expression means in every document, so that a hint may say "write …". Where
no rule leads to something that is supported, there is no such hint. A test compares all of them
with lxml (``tests/language/test_hints.py``).

``string(b) = '1'`` asks for the *first* ``b``, and ``b = '1'`` for any. Along child steps the first
node is ``b[1]``; elsewhere ``starts-with()`` and ``string-length()``, which take the first node
too, compare the string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tamis.core.errors import SubscriptionError
from tamis.language.equivalents.document import closed_beside
from tamis.language.equivalents.parts import type_of
from tamis.language.equivalents.rewriting import PARTS_MAX, Rewriter
from tamis.language.grammar import Syntax
from tamis.language.printer import TooLongError, print_syntax


class Equivalent(NamedTuple):
    """An expression that means the same.

    Attributes:
        selects: it also selects the same nodes, where the other one selects any.
    """

    text: str
    selects: bool


def equivalent(
    syntax: Syntax, check: Callable[[Syntax], object], *, as_boolean: bool = True
) -> Equivalent | None:
    """A supported expression that means the same, if one is known.

    Args:
        check: raises a ``SubscriptionError`` for what is not supported.
        as_boolean: nothing but the truth of it matters, and the nodes of a path.

    >>> from tamis.language.grammar import parse_syntax
    >>> from tamis.language.analyzer import Analyzer
    >>> from tamis.core.limits import Limits
    >>> syntax = parse_syntax("//a[string(b) = '1'][/c]", Limits())
    >>> equivalent(syntax, Analyzer("", {}).query)
    Equivalent(text="//a[b[1] = '1'] and /c", selects=False)
    """
    selects = type_of(syntax) == "nodes"
    rewriter = Rewriter()
    try:
        exact = rewriter.value(syntax) if selects or not as_boolean else rewriter.truth(syntax)
        for candidate in (exact, closed_beside(exact)) if as_boolean else (exact,):
            text = print_syntax(candidate, PARTS_MAX)
            try:
                check(candidate)
            except SubscriptionError:
                continue
            return Equivalent(text, not selects or type_of(candidate) == "nodes")
    except (TooLongError, RecursionError):
        pass
    return None
