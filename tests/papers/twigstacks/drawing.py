"""Twigs and documents as the tests draw them, and the answers of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from tamis.core.limits import Limits
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engine import Engine
from tests.support.trees import trees

LIMITS = Limits(depth=1 << 20)

TRAP = "<a><b><c><d/></c><c><e/></c></b></a>"
"""Figure 4: both paths of /a//c[.//d]/e match, and the twig does not."""

_AXIS = st.sampled_from(["/", "/", "//"])
_TEST = st.sampled_from(["a", "a", "b", "c", "*"])


def _twig(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def written(axis: str, test: str, predicates: list[str], step: str | None) -> str:
        relative = (p.removeprefix("/") if p[1] != "/" else f".{p}" for p in predicates)
        return f"{axis}{test}{''.join(f'[{r}]' for r in relative)}{step or ''}"

    return st.builds(written, _AXIS, _TEST, st.lists(inner, max_size=3), st.none() | inner)


TWIGS = st.recursive(st.builds("".join, st.tuples(_AXIS, _TEST)), _twig, max_leaves=6)
"""Splits with mixed / and //, repeated tags, ``*`` everywhere."""


TREES = trees("aaabbcx", chain_max=5, leaves_max=16)
"""Recursive documents."""


def answers(engine: Engine, twigs: Sequence[str], documents: Sequence[str]) -> list[set[str]]:
    """By document, the twigs that an engine finds true; in two batches, which changes nothing."""
    program = engine.compile(list(map(parse, twigs)))
    searcher = engine.searcher(program, LIMITS.cache_bytes)
    vocabulary = Vocabulary()
    found = []
    half = len(documents) // 2
    for part in (documents[:half], documents[half:]):
        sources = [Source(text.encode()) for text in part]
        batch, errors = parse_documents(sources, vocabulary, Projection(), LIMITS)
        assert not errors
        matches = searcher.match(batch, vocabulary)
        found += [{twigs[n] for n in matches.numbers(d)} for d in range(batch.documents)]
    return found


# -- without Hypothesis, for processes of their own ------------------------------------------------


def drawn_twigs(draw: Random, count: int) -> list[str]:
    """Different twigs, with splits, repeated tags, ``//`` and ``*``."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[_drawn_twig(draw, 3)] = None
    return list(found)


def _drawn_twig(draw: Random, levels: int) -> str:
    text = draw.choice(["/", "/", "//"]) + draw.choice("aabc*")
    if levels:
        for _ in range(draw.choice([0, 0, 1, 2])):
            inner = _drawn_twig(draw, levels - 1)
            text += f"[{f'.{inner}' if inner.startswith('//') else inner[1:]}]"
        if draw.random() < 0.6:
            text += _drawn_twig(draw, levels - 1)
    return text


def drawn_xml(draw: Random, levels: int = 6) -> str:
    """A recursive document."""
    name = draw.choice("aaabcx")
    children = draw.choice([0, 1, 1, 2, 3]) if levels else 0
    return f"<{name}>{''.join(drawn_xml(draw, levels - 1) for _ in range(children))}</{name}>"
