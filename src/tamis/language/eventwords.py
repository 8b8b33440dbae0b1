"""The words of expressions about events: tokens, operators, and what to write instead of others."""

from __future__ import annotations

import re

from tamis.core.lazy import lazy_pattern
from tamis.language.attributes import NAME

JOINS = ("and", "or", ")")
SAME = ("=", "!=")
ORDER = ("<", "<=", ">", ">=")
PARTS = ("prefix", "suffix", "contains")
OPERATORS = "= != < <= > >= prefix suffix contains in between exists absent"
_SHOWN_MAX = 40
INT64 = range(-(1 << 63), 1 << 63)

_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])"
TOKEN = lazy_pattern(
    rf"""[ \t\r\n]*(?:
        (?P<string>i?"(?:[^"\\]|\\.)*"|i?'(?:[^'\\]|\\.)*')
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>{_NUMBER})
      | (?P<symbol><=|>=|!=|==|<>|&&|\|\||[=<>!(),\[\]]|\.(?=[`(]|[^\W\d]))
      | (?P<word>{NAME})
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
COMPARED_NAME = lazy_pattern(r"[\s(]*[^\W\d][\w.-]*\s*[=!<>]")
APART = " \t\r\n=!<>()\"'`,~&|"
_ODD = r"[^\s=!<>()\"'`,~&|]"
ODD_NAME = lazy_pattern(rf"[\w.:-]*(?![\w.:-])({_ODD}){_ODD}*\w{_ODD}*")
"""What is a name only in backquotes, between characters that stand apart; and why."""
_NULL_ONLY = "write = null, or absent for what is missing or null"
_INSTEAD = dict(
    pair.split("→")
    for pair in "==→= <>→!= &&→and ||→or ≥→>= ≤→<= ≠→!= True→true TRUE→true False→false "
    "FALSE→false startswith→prefix starts→prefix endswith→suffix ends→suffix".split()
)
_PATTERNS = "there are no patterns: prefix, suffix and contains look for a string, case and all"
HINTS = {
    **{word: f"write {instead}" for word, instead in _INSTEAD.items()},
    **dict.fromkeys(("~", "matches", "like", "ilike"), _PATTERNS),
    "None": "write null",
    "null": _NULL_ONLY,
    **dict.fromkeys("“”", "write plain quotes"),
    "not": 'not comes before a whole constraint: not area prefix "a"',
    "!": "write not",
    "NaN": "no constant can be NaN",
    "Infinity": "no constant can be infinite",
    "#": "comments are lines of their own",
    "/": "XPath is for documents: use tamis.compile, or tamis match; a name with / is written in "
    "backquotes",
    "is": "write =; or exists, or absent",
}


def cut(text: str) -> str:
    """A text for messages, of which a long one is cut."""
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def double_quoted(match: re.Match[str]) -> str:
    """What is special in single quotes, as it is in double ones."""
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])
