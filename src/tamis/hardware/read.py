"""Queries → the tables that circuits are generated from: the only module that sees a query.

A query without branches becomes a *path*: steps with the tags that pass, matched from the root
downwards. Every other query becomes a *twig*, whose nodes are matched from the leaves upwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tamis.core.errors import UsageError
from tamis.core.names import XML_NAMESPACE, is_ncname
from tamis.language.model import Axis, NameTest, Query
from tamis.matching.engine import Refused
from tamis.matching.engines.stacks import read as twigs

NAME_MAX = 255
"""Characters of a name in the alphabet; a longer one in a document is an unknown one."""
TEXT_REASON = "it asks for the text of an element"
QUESTION_REASON = "it compares an attribute other than with = and a string"


class Fact(NamedTuple):
    """What a start tag can say besides its name: it has an attribute, with this value if not None.

    ``names`` are those of the attribute as documents may write it.
    """

    names: tuple[str, ...]
    value: bytes | None


class Step(NamedTuple):
    """A step of a path.

    Attributes:
        below: whether it leads to descendants (``//``), not to children (``/``).
        tags: the numbers of the tags that pass, ascending; None: all pass.
        facts: the numbers of the facts that the start tag must show.
    """

    below: bool
    tags: tuple[int, ...] | None
    facts: tuple[int, ...] = ()


Path = tuple[Step, ...]


class TwigNode(NamedTuple):
    """A node of a twig; see :mod:`tamis.matching.engines.stacks.read` for parents and kinds."""

    parent: int
    kind: int
    negated: bool
    tags: tuple[int, ...] | None = None
    fact: int = -1


Twig = tuple[TwigNode, ...]


class Tables(NamedTuple):
    """What a circuit is generated from.

    Attributes:
        tags: the alphabet: element names as documents write them. A tag's number is its index.
        facts: what start tags are asked for.
        paths, twigs: the distinct queries. Match bit *b* is that of ``paths[b]``, or of
            ``twigs[b - len(paths)]``.
        bits: for each query the number of its match bit; -1: it was refused.
        refused: the number of each refused query, and why.
    """

    tags: tuple[str, ...]
    facts: tuple[Fact, ...]
    paths: tuple[Path, ...]
    twigs: tuple[Twig, ...]
    bits: tuple[int, ...]
    refused: Mapping[int, str]

    @property
    def bit_count(self) -> int:
        """The number of match bits."""
        return len(self.paths) + len(self.twigs)


Name = tuple[str, str]
"""A namespace's URI, or "", and a local name."""


def read_queries(
    queries: Iterable[Query],
    alphabet: Iterable[Name] = (),
    prefixes: Mapping[str, str] = {},
    has_facts: bool = True,
) -> Tables:
    """The tables of queries.

    Args:
        queries: they may ask for paths, branches, ``and``, ``or``, ``not()``, and for attributes:
            whether there is one, or whether it equals a string.
        alphabet: further names of elements that documents may contain.
        prefixes: the URI of each prefix that documents use; ``""`` for their default namespace.
        has_facts: whether the circuit reads attributes.

    >>> from tamis.language.xpath import parse
    >>> tables = read_queries(map(parse, ["//a/b", "/a[b or c]", "//a[count(b) = 2]", "//a[b]"]))
    >>> tables.tags, tables.bits, tables.refused
    (('a', 'b', 'c'), (0, 1, -1, 0), {2: 'it calls count()'})
    >>> tables.paths
    ((Step(below=True, tags=(0,), facts=()), Step(below=False, tags=(1,), facts=())),)
    """
    found: dict[int, twigs.Twig] = {}
    refused: dict[int, str] = {}
    count = 0
    for number, twig in enumerate(twigs.twigs_of(list(queries))):
        count += 1
        reason = str(twig) if isinstance(twig, Refused) else _refuses_facts(twig, has_facts)
        if isinstance(twig, Refused) or reason is not None:
            refused[number] = reason or ""
        else:
            found[number] = twig
    reader = _Reader(found.values(), alphabet, prefixes)
    lowered = {number: reader.lower(twig) for number, twig in found.items()}
    paths = dict.fromkeys(path for number in lowered if (path := _path_of(lowered[number])))
    bits: dict[object, int] = {path: bit for bit, path in enumerate(paths)}
    branched = dict.fromkeys(twig for twig in lowered.values() if not _path_of(twig))
    bits |= {twig: len(paths) + bit for bit, twig in enumerate(branched)}
    return Tables(
        reader.tags,
        tuple(reader.facts),
        tuple(paths),
        tuple(branched),
        tuple(
            bits[_path_of(lowered[number]) or lowered[number]] if number in lowered else -1
            for number in range(count)
        ),
        refused,
    )


def _refuses_facts(twig: twigs.Twig, has_facts: bool) -> str | None:
    """Why facts are not about an attribute's presence or its equality with a string, if so."""
    for node in twig:
        if node.fact is None:
            continue
        if node.fact.axis is not Axis.ATTRIBUTE:
            return TEXT_REASON
        if not has_facts:
            return "it asks for an attribute, which only a byte a cycle can show"
        question = node.fact.question
        if question and (
            question.functions
            or question.operator != "="
            or not isinstance(question.literal, bytes)
        ):
            return QUESTION_REASON
        test = node.fact.test
        if not isinstance(test, NameTest) or None in (test.namespace, test.local):
            return "it asks for an attribute of any name"
    return None


class _Reader:
    """Numbers names and facts, and lowers twigs to those numbers."""

    def __init__(
        self, found: Iterable[twigs.Twig], alphabet: Iterable[Name], prefixes: Mapping[str, str]
    ) -> None:
        tests = {node.test for twig in found for node in twig if node.test is not None}
        asked = ((test.namespace, test.local) for test in tests)
        names = {(uri, local) for uri, local in asked if uri is not None and local is not None}
        for name in alphabet:
            if not is_ncname(name[1]):
                raise UsageError(f"a name of an alphabet is a URI and a local name, not {name}")
            if len(name[1]) <= NAME_MAX:
                names.add(name)
        self._prefixes = {"xml": XML_NAMESPACE, **prefixes}
        expanded = {
            written: name for name in names for written in self._written(*name, is_element=True)
        }
        self.tags = tuple(sorted(expanded))
        self._names = [expanded[tag] for tag in self.tags]
        self.facts: dict[Fact, int] = {}
        self._passing: dict[NameTest, tuple[int, ...] | None] = {twigs.ANY_ELEMENT: None}

    def _written(self, uri: str, local: str, is_element: bool) -> list[str]:
        """How documents may write a name."""
        prefixes = [p for p, of in self._prefixes.items() if of == uri and (p or is_element)]
        written = [f"{prefix}:{local}" if prefix else local for prefix in prefixes]
        # An attribute ``xmlns`` is a declaration, and no attribute to a query.
        if not uri and not (self._prefixes.get("") if is_element else local == "xmlns"):
            written.append(local)
        return written

    def lower(self, twig: twigs.Twig) -> Twig:
        return tuple(
            TwigNode(
                node.parent,
                node.kind,
                node.negated,
                None if node.test is None else self._passes(node.test),
                -1 if node.fact is None else self._fact(node.fact),
            )
            for node in twig
        )

    def _passes(self, test: NameTest) -> tuple[int, ...] | None:
        if test not in self._passing:
            self._passing[test] = tuple(
                tag for tag, name in enumerate(self._names) if test.passes(*name)
            )
        return self._passing[test]

    def _fact(self, fact: twigs.Fact) -> int:
        test, question = fact.test, fact.question
        assert isinstance(test, NameTest)
        assert test.namespace is not None
        assert test.local is not None
        written = self._written(test.namespace, test.local, is_element=False)
        value = None if question is None else question.literal
        assert value is None or isinstance(value, bytes)
        return self.facts.setdefault(Fact(tuple(written), value), len(self.facts))


def _path_of(twig: Twig) -> Path:
    """The steps of a twig without branches; empty where it has some."""
    steps: list[Step] = []
    last = 0
    for number, node in enumerate(twig[1:], start=1):
        if node.negated or node.parent != last:
            return ()
        if node.kind == twigs.FACT and steps:
            steps[-1] = steps[-1]._replace(facts=(*steps[-1].facts, node.fact))
        elif node.kind in (twigs.CHILD, twigs.DESCENDANT):
            steps.append(Step(node.kind == twigs.DESCENDANT, node.tags))
            last = number
        else:
            return ()
    return tuple(steps)
