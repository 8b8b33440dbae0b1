"""Linear filters: paths of child and descendant steps to elements, as sequences of integers.

What engines of the field share and papers compare: a *filter* is ``/a//b/*``, without predicates. A
query is one filter, or a union of several; of each step its *code* is known, twice the label of its
element, and 1 if it descends (``//``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tamis.language import table as t
from tamis.language.model import DESCEND, HERE, Axis, NameTest, NodeTest, Step
from tamis.language.table import QueryTable

Codes = tuple[int, ...]
"""A filter: for each step ``label << 1 | descends``."""

WILDCARD = 0
"""The label of ``*``."""


class Labels:
    """What steps test elements for, each with a number, its *label*; ``*`` has ``WILDCARD``.

    A name in a namespace is written ``{URI}local``; ``{URI}*`` is all names of a namespace.

    >>> labels = Labels()
    >>> labels.read("/a//b/*"), labels.read("//*//b")
    ((2, 5, 0), (1, 5))
    >>> labels.written((2, 5, 0)), labels.names
    ('/a//b/*', ['*', 'a', 'b'])
    """

    def __init__(self) -> None:
        self.names: list[str] = ["*"]
        self._labels: dict[str, int] = {"*": WILDCARD}

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

    def test(self, label: int) -> NameTest:
        """The test that a label stands for."""
        name = self.names[label]
        if label == WILDCARD:
            return NameTest(None, None)
        namespace, closing, local = name[1:].rpartition("}") if name[0] == "{" else ("", "", name)
        return NameTest(namespace, None if closing and local == "*" else local)

    # -- of queries --------------------------------------------------------------------------------

    def of_test(self, test: NodeTest) -> int:
        """The label of a name test on elements, which has to have one."""
        assert isinstance(test, NameTest)
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

    def each(self, table: QueryTable) -> Iterator[list[Codes] | None]:
        """The filters whose union each query is, or None where it is more than that.

        >>> labels = Labels()
        >>> from tamis.language.lower import lowered
        >>> from tamis.language.xpath import parse
        >>> table = lowered(map(parse, ["/a/b", "/a | //b", "//a[b]", "/a[2]", "/a[b or c]"]))
        >>> list(labels.each(table))
        [[(2, 4)], [(2,), (5,)], [(3, 4)], None, None]
        """
        labels = [
            self.of_test(test) if not is_attribute and has_label(test) else -1
            for is_attribute, test in table.tests
        ]
        words = table.code.tolist()
        for start, end in pairwise(table.starts.tolist()):
            if end > start and words[start] & t.KIND_MASK == t.ANY:
                yield _union(words, start + 1, end - 1, labels)
            else:
                is_even = (end - start) % 2 == 0  # as many END as STEP
                codes = _filter(words[start : (start + end) // 2], labels) if is_even else None
                yield None if codes is None else [codes]


def _filter(steps: Sequence[int], labels: Sequence[int]) -> Codes | None:
    """A filter, of which these are the first half of the words: the others end the levels."""
    below = (t.DESCENDANT << t.KIND_BITS).bit_length() - 1
    of_step = t.KIND_MASK | (t.SELF | t.FIRST | t.COUNTED) << t.KIND_BITS
    if not steps or any(word & of_step != t.STEP for word in steps):
        return None
    test = t.KIND_BITS + t.TEST_SHIFT
    codes = tuple(labels[word >> test] << 1 | word >> below & 1 for word in steps)
    return codes if min(codes) >= 0 else None  # a test without a label has -1


def _union(words: Sequence[int], start: int, end: int, labels: Sequence[int]) -> list[Codes] | None:
    """The filters that are the items between two places, if there are some and all are filters."""
    found: list[Codes] = []
    while start < end:
        steps = start
        while words[steps] & t.KIND_MASK == t.STEP:
            steps += 1
        count = steps - start
        codes = _filter(words[start:steps], labels)
        ends = words[steps : steps + count]
        if codes is None or any(word & t.KIND_MASK != t.END for word in ends):
            return None
        found.append(codes)
        start = steps + count
    return found or None


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
