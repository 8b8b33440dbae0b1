"""Linear filters: paths of child and descendant steps to elements, as sequences of integers.

What engines of the field share and papers compare: a *filter* is ``/a//b/*``, without predicates. A
query is one filter, or a union of several; of each step its *code* is known, twice the label of its
element, and 1 if it descends (``//``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tamis.language.model import DESCEND, HERE, Axis, Exists, NameTest, NodeTest, Query, Step
from tamis.language.queries import Queries
from tamis.language.table import (
    BELOW,
    ITSELF,
    KIND_BITS,
    KIND_MASK,
    MAIN,
    STEP,
    TEST_SHIFT,
    QueryTable,
)

Codes = tuple[int, ...]
"""A filter: for each step ``label << 1 | descends``."""

ANY = 0
"""The label of ``*``."""


class Labels:
    """What steps test elements for, each with a number, its *label*; ``*`` has ``ANY``.

    A name in a namespace is written ``{URI}local``; ``{URI}*`` is all names of a namespace.

    >>> labels = Labels()
    >>> labels.read("/a//b/*"), labels.read("//*//b")
    ((2, 5, 0), (1, 5))
    >>> labels.written((2, 5, 0)), labels.names
    ('/a//b/*', ['*', 'a', 'b'])
    """

    def __init__(self) -> None:
        self.names: list[str] = ["*"]
        self._labels: dict[str, int] = {"*": ANY}

    def of(self, name: str) -> int:
        """The label of a name."""
        label = self._labels.setdefault(name, len(self.names))
        if label == len(self.names):
            self.names.append(name)
        return label

    def read(self, text: str) -> Codes:
        """A filter that is written as XPath has it, without namespaces."""
        codes: list[int] = []
        descends = False
        for part in text.split("/")[1:]:
            if part:
                codes.append(self.of(part) << 1 | descends)
            descends = not part
        return tuple(codes)

    def written(self, codes: Sequence[int]) -> str:
        """A filter as XPath."""
        return "".join(f"/{'/' * (code & 1)}{self.names[code >> 1]}" for code in codes)

    def steps(self, codes: Sequence[int]) -> tuple[Step, ...]:
        """A filter as the steps of a path."""
        steps: list[Step] = []
        for code in codes:
            if code & 1:
                steps.append(DESCEND)
            steps.append(Step(Axis.CHILD, self.test(code >> 1)))
        return tuple(steps)

    def test(self, label: int) -> NameTest:
        """The test that a label stands for."""
        name = self.names[label]
        if label == ANY:
            return NameTest(None, None)
        namespace, closing, local = name[1:].rpartition("}") if name[0] == "{" else ("", "", name)
        return NameTest(namespace, None if closing and local == "*" else local)

    # -- of queries --------------------------------------------------------------------------------

    def of_test(self, test: NameTest) -> int:
        """The label of a name test on elements, which has to have one."""
        assert has_label(test)
        return self.of(expanded_name(test.namespace, test.local))

    def codes(self, steps: Sequence[Step]) -> Codes | None:
        """The filter that some steps are, or None where they are none.

        ``/descendant::a`` is ``//a``, and ``self::node()`` nothing.
        """
        codes: list[int] = []
        descends = 0
        for step in steps:
            if step == DESCEND:
                descends = 1
            elif step == HERE:
                continue
            elif (
                step.axis in (Axis.CHILD, Axis.DESCENDANT)
                and isinstance(step.test, NameTest)
                and has_label(step.test)
                and not step.predicates
            ):
                is_below = descends or step.axis is Axis.DESCENDANT
                codes.append(self.of_test(step.test) << 1 | is_below)
                descends = 0
            else:
                return None
        return None if descends or not codes else tuple(codes)

    def filters(self, query: Query) -> list[Codes] | None:
        """The filters whose union a query is, or None where it is more than that."""
        paths = query.expression.paths if isinstance(query.expression, Exists) else ()
        found: list[Codes] = []
        for path in paths:
            codes = self.codes(path.steps)
            if codes is None:
                return None
            found.append(codes)
        return found or None

    def each(self, queries: Sequence[Query]) -> Iterator[list[Codes] | None]:
        """The filters of each query; those that were read in bulk need not become objects."""
        if isinstance(queries, Queries):
            yield from self._plain(queries.plain)
            queries = queries.others
        yield from map(self.filters, queries)

    def _plain(self, plain: QueryTable) -> Iterator[list[Codes] | None]:
        labels = [
            self.of_test(test) if isinstance(test, NameTest) and not is_attribute else -1
            for is_attribute, test in plain.tests
        ]
        words = plain.code.tolist()
        below = (BELOW << KIND_BITS).bit_length() - 1
        shift = KIND_BITS + TEST_SHIFT
        step = STEP | MAIN << KIND_BITS
        of_step = KIND_MASK | (MAIN | ITSELF) << KIND_BITS
        for start, end in pairwise(plain.starts.tolist()):
            path = words[start : (start + end) // 2]  # of a filter, all ENDs are behind it
            if any(word & of_step != step for word in path):
                yield None
                continue
            codes = tuple(labels[word >> shift] << 1 | word >> below & 1 for word in path)
            yield [codes] if min(codes) >= 0 else None  # a test without a label has -1


def has_label(test: NodeTest) -> bool:
    """Whether a test may be a step of a filter: ``*:name`` and ``Q{}*`` may not.

    >>> has_label(NameTest(None, "a")), has_label(NameTest("", None)), has_label(NameTest("", "a"))
    (False, False, True)
    """
    if not isinstance(test, NameTest):
        return False
    return bool(test.namespace) or (test.namespace is None) == (test.local is None)


def is_open(name: str) -> bool:
    """Whether several elements pass: ``*``, or all names of a namespace.

    >>> is_open("*"), is_open("{urn:x}*"), is_open("{urn:x}a")
    (True, True, False)
    """
    return name == "*" or name.endswith("}*")


def expanded_name(namespace: str | None, local: str | None) -> str:
    """An expanded name, or all names of a namespace, as labels have it.

    >>> expanded_name("", "a"), expanded_name("urn:x", None), expanded_name(None, None)
    ('a', '{urn:x}*', '*')
    """
    return f"{{{namespace}}}{local or '*'}" if namespace else local or "*"
