"""Subscriptions drawn from documents: from their paths, names and values.

>>> drawn = draw_from_documents(["<shop><item id='7'>cup</item></shop>"], 4, seed=9)
>>> for subscription in drawn.expressions:
...     print(subscription)
/*[starts-with(local-name(), 'shop')]
/descendant::shop[*/shop or starts-with(local-name(), 'sh')]/*[2]
/shop/descendant::item[shop]
/child::shop[string-length(.) <= 4][. = 'cup']/@*
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tamis.core.errors import SubscriptionLimitError, UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import XML_NAMESPACE
from tamis.documents.source import Document
from tamis.language.xpath import parse
from tamis.matching.batches import BATCH_DOCUMENTS
from tamis.matching.matcher import compile_subscriptions
from tamis_workload.draws import Draws
from tamis_workload.observed.predicates import SEEN_CHARS, Predicates
from tamis_workload.observed.trees import Element, Tree, read_trees
from tamis_workload.queries.queries import Queries

_WRITTEN_STEPS = 10  # of a deeper path, about so many are written


class Expressions:
    """Draws whole expressions; ``holds`` asks for what is true of a document, or for a near miss.

    What is asked to be true is true, but for ``not(path)``. A near miss is a path with one fault at
    the element that it leads to, and may be true elsewhere.
    """

    def __init__(self, predicates: Predicates) -> None:
        self.predicates = predicates
        self.compare = predicates.compare
        self.draws = predicates.draws
        self.name = predicates.name
        self.element = predicates.element

    # -- whole expressions ---------------------------------------------------------------------

    def expression(self, holds: bool) -> str:
        """A path mostly, sometimes several that operators join, a negation or a comparison."""
        kind = self.draws.random()
        if kind < 0.75:
            return self.path(self.element(), holds)
        if kind < 0.85:
            return self.joined(holds)
        if kind < 0.9:
            return f"not({self.path(self.element(), not holds)})"
        if kind < 0.92:
            return f"boolean({self.path(self.element(), holds)})"
        return self.comparison_at_root(self.element(), holds)

    def joined(self, holds: bool) -> str:
        """Two paths of one document, since both have to be true of one."""
        tree = self.draws.choice(self.predicates.trees)
        operator = self.draws.choice((" and ", " or ", " | "))
        if operator == " and ":
            truths = (True, True) if holds else (True, False)
        else:
            truths = (True, False) if holds else (False, False)
        if self.draws.chance(0.5):
            truths = truths[::-1]
        return operator.join(self.path(self.draws.choice(tree.elements), t) for t in truths)

    def comparison_at_root(self, element: Element, holds: bool) -> str:
        """A comparison or function of all elements of a name, or of the first of them."""
        path = "//" + self.name(element.name)
        tree = element.tree
        kind = self.draws.random()
        if kind < 0.2:
            child = self.draws.choice(tree.elements[0].children or tree.elements[:1])
            parents = "/" if child.parent is None else f"/{self.name(tree.elements[0].name)}/"
            count = f"count({parents}{self.name(child.name)})"
            return self.compare.number(count, str(len(child.alike)), holds)
        if holds and kind < 0.6:
            value = element.string(SEEN_CHARS)
            return self.compare.of_some(path, value, element.stop - element.start)
        first = tree.elements[tree.places[element.name][0]]
        return self.predicates.of_first(path, first, holds)

    # -- paths ---------------------------------------------------------------------------------

    def path(self, element: Element, holds: bool) -> str:
        """A path to the element, loosened, with predicates; not ``holds`` asks for one fault."""
        steps = element.path
        fault = "" if holds else self.draws.choice(("name", "predicate", "predicate", "tail"))
        tail = self.tail(element, fault != "tail")
        if fault == "tail" and not tail:
            fault = "name"
        skipping = max(0.3, 1 - _WRITTEN_STEPS / len(steps))
        last = len(steps) - 1
        faulty = self.draws.below(len(steps)) if fault in ("name", "predicate") else -1
        text = ""
        skipped = False
        for index, node in enumerate(steps):
            if index not in (last, faulty) and self.draws.chance(skipping):
                skipped = True
                continue
            text += "//" if skipped else "/"
            skipped = False
            is_faulty = index == faulty
            text += self.step(node, is_faulty and fault == "name", steps)
            if index == last or is_faulty or self.draws.chance(0.25):
                position = self.position_of(node, text)
                text += self.predicates.brackets(
                    node, position, not (is_faulty and fault == "predicate")
                )
        if self.draws.chance(0.03):  # the context of the whole is the document node
            text = "." + text if text.startswith("//") else text[1:]
        return text + tail

    def step(self, node: Element, fault: bool, path: Sequence[Element]) -> str:
        """Axis and node test; ``fault`` asks for another element's name, at times one nearby."""
        kind = self.draws.random()
        axis = ""
        if kind < 0.03:
            axis = "descendant-or-self::"
        elif kind < 0.06:
            axis = "descendant::"
        elif kind < 0.08:
            axis = "child::"
        if fault:
            other = self.draws.choice(path) if self.draws.chance(0.4) else self.element()
            # In documents of few names nothing better may be at hand than a name that none has.
            return axis + self.name(other.name) + ("_" if other.name == node.name else "")
        kind = self.draws.random()
        if kind < 0.15:
            return f"{axis}*"
        if kind < 0.17:
            return f"{axis}*/self::{self.name(node.name)}"
        if kind < 0.2 and node.name[0]:
            return f"{axis}{self.predicates.prefixes[node.name[0]]}:*"
        return axis + self.name(node.name)

    def position_of(self, node: Element, path: str) -> int:
        """The position that the node has at the end of this path, 0 where none may be asked for."""
        step = path[path.rfind("/") + 1 :].removeprefix("child::")
        if "::" in step or step.endswith(":*"):
            return 0
        return node.number if step == "*" else node.position

    def tail(self, element: Element, holds: bool) -> str:
        """Sometimes a last step to an attribute or text; "" where there is none to be had."""
        kind = self.draws.random()
        if holds:
            kind *= 4  # most paths end with their element
        if kind < 0.3:
            return self.attribute_tail(element, holds)
        if kind < 0.6:
            return self.text_tail(element, holds)
        if kind < 0.72:
            return "/node()" if (element.nodes > 0) == holds else ""
        if kind < 0.8 and holds:
            return self.draws.choice(("/.", "/self::node()", "/self::*", "//."))
        if kind < 0.9 and holds == (element.start < element.stop):
            return "//text()"
        return ""

    def attribute_tail(self, element: Element, holds: bool) -> str:
        if not holds:
            absent = self.predicates.absent_attribute(element)
            return f"/@{absent}" if absent else ""
        if not element.attributes:
            return ""
        name, value = self.draws.choice(element.attributes)
        if self.draws.chance(0.2):
            compared = self.compare.of_only(".", value[:SEEN_CHARS], len(value), True)
            return f"/@{self.name(name)}[{compared}]"
        if self.draws.chance(0.1):
            return "/@*"
        return self.draws.choice(("/@", "/@", "//@", "/attribute::")) + self.name(name)

    def text_tail(self, element: Element, holds: bool) -> str:
        if not holds:
            return f"/text()[{len(element.texts) + 1}]"
        if not element.texts:
            return ""
        place = self.draws.below(len(element.texts))
        start, stop = element.texts[place]
        kind = self.draws.random()
        if kind < 0.3:
            value = element.tree.text[start : min(stop, start + SEEN_CHARS)]
            return f"/text()[{self.compare.of_only('.', value, stop - start, True)}]"
        return f"/text()[{place + 1}]" if kind < 0.5 else "/text()"


# With the near misses that are true elsewhere, about half match.
_BUILT_TRUE = 0.45

# So many candidates are drawn before it is said that no more can be found.
_CANDIDATES_PER_SUBSCRIPTION = 20
_FREE_CANDIDATES = 10_000

_BATCH_CANDIDATES = (64, 16_384)  # fewest and most that are answered at a time
_NESTING = 16  # more than the expressions drawn here ever have


def draw_from_documents(
    documents: Iterable[Document],
    count: int,
    *,
    seed: int = 0,
    matching: float | None = None,
    distinct: bool = False,
    one_line: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Queries:
    r"""Draw subscriptions from the structure and the values of documents.

    Nearly half are paths to an element that a document has, loosened, with predicates that are true
    there. The others are near misses, with one fault (a name, a value, a position) that may be none
    elsewhere: about half of all match. Every kind of construct that Tamis supports occurs, and
    nothing that it refuses. The same arguments give the same subscriptions on every machine.

    Args:
        documents: as :meth:`tamis.CompiledMatcher.match` takes them; all are held in memory, and
            each is drawn from as often, however long.
        count: how many subscriptions.
        seed: another seed, other subscriptions.
        matching: the share, from 0 to 1, that is true of at least one of the documents: met
            exactly, up to a whole subscription, and by any part of the list nearly. None leaves it
            to chance, and is much faster, for the documents need not be matched.
        distinct: no two are the same text.
        one_line: none has a line break or a tab in it, so that each can be a line of a file.
        limits: bounds on each document and expression.

    Raises:
        DocumentError: the error of the first document that has one, with its name.
        UsageError: an argument is wrong, or the documents do not yield so many subscriptions.

    >>> document = "<shop><item id='7'>cup</item><item id='8'>pot</item></shop>"
    >>> drawn = draw_from_documents([document], 200, matching=0.25, distinct=True)
    >>> matcher = compile_subscriptions(enumerate(drawn.expressions))
    >>> len(matcher.match(document)), len(set(drawn.expressions))
    (50, 200)
    """
    count = operator.index(count)
    if count < 0:
        raise UsageError(f"count={count}: it cannot be negative")
    if matching is not None and not 0 <= matching <= 1:
        raise UsageError(f"matching={matching}: a share is a number from 0 to 1")
    trees = read_trees(documents, limits)
    if not trees:
        raise UsageError("there is no document to draw subscriptions from")
    candidates = _Candidates(trees, seed, one_line, limits, distinct)
    if matching is None:
        texts = list(candidates.some(count))
        _check_found(len(texts), count, "", distinct)
    else:
        wanted = int(count * matching + 0.5)
        true, false = _by_truth(candidates, wanted, count - wanted)
        _check_found(len(true), wanted, "that are true of some document", distinct)
        _check_found(len(false), count - wanted, "that are true of no document", distinct)
        texts = _interleaved(true, false, Draws(seed, "order of subscriptions"))
    return Queries(texts, candidates.namespaces)


class _Candidates:
    """The stream of subscriptions that a seed stands for, without an end but for its budget."""

    def __init__(
        self, trees: Sequence[Tree], seed: int, one_line: bool, limits: Limits, distinct: bool
    ) -> None:
        self.trees = trees
        self.limits = limits
        self.namespaces = _namespaces(trees)
        prefixes = {uri: prefix for prefix, uri in self.namespaces.items()}
        self.draws = Draws(seed, "subscriptions from documents")
        self.expressions = Expressions(Predicates(trees, prefixes, self.draws, one_line))
        self.seen: dict[str, None] | None = {} if distinct else None
        self.tried = 0
        # A shorter text is within the limits: whatever they count takes a character.
        self.safe_chars = min(
            limits.subscription_chars, limits.subscription_steps, limits.subscription_predicates
        )
        if limits.subscription_nesting < _NESTING:
            self.safe_chars = 0

    def some(self, count: int) -> Iterator[str]:
        """So many, or fewer where the budget for so many is used up."""
        budget = self.tried + _FREE_CANDIDATES + _CANDIDATES_PER_SUBSCRIPTION * count
        while count and self.tried < budget:
            self.tried += 1
            text = self.expressions.expression(self.draws.chance(_BUILT_TRUE))
            if len(text) > self.safe_chars and not self.is_within_limits(text):
                continue
            if self.seen is not None:
                if text in self.seen:
                    continue
                self.seen[text] = None
            count -= 1
            yield text

    def is_within_limits(self, text: str) -> bool:
        try:
            parse(text, self.namespaces, self.limits)
        except SubscriptionLimitError:
            return False
        return True


def _namespaces(trees: Sequence[Tree]) -> dict[str, str]:
    """``n0``, ``n1``, … for the namespaces that occur, in the order of the documents."""
    found: dict[str, None] = {}
    for tree in trees:
        for element in tree.elements:
            found[element.name[0]] = None
            for (uri, _), _ in element.attributes:
                found[uri] = None
    uris = [uri for uri in found if uri not in ("", XML_NAMESPACE)]
    return {f"n{number}": uri for number, uri in enumerate(uris)}


def _by_truth(candidates: _Candidates, true: int, false: int) -> tuple[list[str], list[str]]:
    """So many that are true of some document, and so many that are true of none.

    Both in the order of drawing; fewer where even many candidates yield no more.
    """
    found: tuple[list[str], list[str]] = [], []
    most = candidates.tried + _FREE_CANDIDATES + _CANDIDATES_PER_SUBSCRIPTION * (true + false)
    while (missing := max(true - len(found[0]), false - len(found[1]))) > 0:
        fewest, largest = _BATCH_CANDIDATES
        size = min(max(2 * missing, fewest), largest)
        batch = list(candidates.some(size))
        for text, is_true in zip(batch, _answers(candidates, batch), strict=True):
            texts, wanted = (found[0], true) if is_true else (found[1], false)
            if len(texts) < wanted:
                texts.append(text)
        if len(batch) < size or candidates.tried >= most:
            break
    return found


def _answers(candidates: _Candidates, texts: Sequence[str]) -> list[bool]:
    """Which of the texts are true of some document."""
    answers = np.zeros(len(texts), dtype=np.bool_)
    sources = [tree.source for tree in candidates.trees]
    for first in range(0, len(sources), BATCH_DOCUMENTS):
        left = np.flatnonzero(~answers)  # what is true of one document need not be asked again
        matcher = compile_subscriptions(
            ((number, texts[number]) for number in left.tolist()),
            namespaces=candidates.namespaces,
            limits=candidates.limits,
        )
        matches = matcher.match_batch(sources[first : first + BATCH_DOCUMENTS])
        for document in range(matches.documents):
            answers[left[matches.numbers(document)]] = True
    found: list[bool] = answers.tolist()
    return found


def _interleaved(true: Sequence[str], false: Sequence[str], draws: Draws) -> list[str]:
    """Both in their order; any beginning has about the share of the whole."""
    result: list[str] = []
    left = [list(reversed(true)), list(reversed(false))]
    while left[0] or left[1]:
        is_false = draws.below(len(left[0]) + len(left[1])) >= len(left[0])
        result.append(left[is_false].pop())
    return result


def _check_found(found: int, wanted: int, which: str, distinct: bool) -> None:
    if found == wanted:
        return
    what = f"{'distinct ' if distinct else ''}subscriptions {which}".rstrip()
    raise UsageError(
        f"only {found:,} of {wanted:,} {what} were found in the documents: ask for fewer"
        f"{', give more documents' if which else ', give larger documents'}"
        f"{', change the share that matches' if which else ''}"
        f"{', or allow equal ones' if distinct else ''}"
    )
