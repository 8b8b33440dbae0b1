"""Both ways of parsing, compared: the fast tokenizer has to give what expat gives.

Whole arrays of a batch are compared; only where they differ are documents looked at one by one. The
two share a vocabulary, and the one that comes second finds all names there, so the ids are equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents import expat
from tamis.documents.parser import Parser
from tamis.documents.vocabulary import ALL_NAMES, EVERYTHING, Projection, Vocabulary
from tests.documents.differences import Both, Parsed, Sources, report, same

ALL = EVERYTHING._replace(lines=False)
# What may be asked of the parser; where it is lines, it is expat that answers.
PROJECTIONS = {
    "nothing": Projection(),
    "attributes": Projection(attributes=ALL_NAMES),
    "text": Projection(text=ALL_NAMES),
    "misc": Projection(misc=True),
    "prefixes": Projection(prefixes=True),
    "attributes and prefixes": Projection(attributes=ALL_NAMES, prefixes=True),
    "offsets": Projection(offsets=True),
    "text and misc": Projection(text=ALL_NAMES, misc=True),
    "all": ALL,
    "lines too": EVERYTHING,
}


class Difference(AssertionError):  # noqa: N818 - says what it is
    """The two paths disagree; the text says where, and how to see it again."""


class Counts(NamedTuple):
    """What became of documents.

    Attributes:
        declined: accepted by expat, though the fast path had left them to it. (It leaves all that
            is rejected.)
    """

    documents: int = 0
    accepted: int = 0
    rejected: int = 0
    declined: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return (
            f"{self.documents:,} documents, {self.rejected:,} rejected, {self.accepted:,} accepted "
            f"({self.declined:,} of these declined by the fast path)"
        )


class BothPaths:
    """Compares batch after batch with one vocabulary and one parser, as a long run has them.

    Args:
        fast_first: the fast path meets new names before expat has put them into the vocabulary.
        fast: compared instead of the fast path: the canaries' wrong parsers.
    """

    def __init__(
        self,
        projection: Projection = ALL,
        limits: Limits | None = None,
        fast_first: bool = False,
        fast: Any = None,
    ) -> None:
        self.vocabulary = Vocabulary()
        self.projection = projection
        self.limits = limits or Limits()
        self.fast_first = fast_first
        self.fast = fast or Parser
        self.parser = self.fast(self.vocabulary, projection, self.limits)
        self.messages: Counter[str] = Counter()
        self.sizes: Counter[str] = Counter()

    def compare(self, sources: Sources, again: str = "") -> Counts:
        """Compare the two paths on these documents.

        Args:
            again: how to see a difference again, for the message.

        Raises:
            Difference: the paths disagree.
        """
        declined = self.parser.declined
        try:
            both = self.both(self.vocabulary, self.parser, sources)
        except Exception as error:
            raise Difference(self.described(sources, again, None)) from error
        newer = newer_names(both)
        if newer:  # the rest is compared, and these are accepted
            rest = [source for number, source in enumerate(sources) if number not in newer]
            return self.compare(rest, again).plus(Counts(len(newer), len(newer)))
        if not same(both):
            raise Difference(self.described(sources, again, both))
        return self.count(sources, both.trusted, self.parser.declined - declined)

    def both(self, vocabulary: Vocabulary, parser: Any, sources: Sources) -> Both:
        if self.fast_first:
            fast = parser.parse(sources)
            return Both(
                vocabulary, expat.parse(sources, vocabulary, self.projection, self.limits), fast
            )
        trusted = expat.parse(sources, vocabulary, self.projection, self.limits)
        return Both(vocabulary, trusted, parser.parse(sources))

    def anew(self, sources: Sources) -> Both:
        """Both results, from a parser and a vocabulary that have seen nothing."""
        vocabulary = Vocabulary()
        return self.both(vocabulary, self.fast(vocabulary, self.projection, self.limits), sources)

    def described(self, sources: Sources, again: str, both: Both | None) -> str:
        return (
            f"{report(sources, self.anew, both)}\n"
            f"BothPaths({self.projection}, {self.limits}, fast_first={self.fast_first})\n"
            f"again: {again or 'BothPaths(...).compare([Source(...)])'}"
        )

    def count(self, sources: Sources, trusted: Parsed, handed_over: int) -> Counts:
        batch, errors = trusted
        unread = sum(isinstance(source, DocumentError) for source in sources)
        declined = handed_over - (len(errors) - unread)
        if self.projection.lines:
            declined = 0
        elif declined < 0:
            raise Difference(
                f"{handed_over} documents declined, {len(errors) - unread} rejected: "
                "all errors are expat's, so that cannot be"
            )
        self.messages.update(error.message for error in errors.values())
        self.sizes["events"] += len(batch.tags)
        self.sizes["attributes"] += len(batch.attribute_name)
        self.sizes["texts"] += len(batch.text_event)
        self.sizes["comments_and_pis"] += len(batch.misc_event)
        return Counts(len(sources), len(sources) - len(errors), len(errors), declined)


def newer_names(both: Both) -> set[int]:
    """The documents with names of XML 1.0's fifth edition, which the fast path alone reads.

    The reason that expat gives is no other; ``test_names.py`` says what is read of these documents.
    """
    errors, found = both.trusted[1], both.fast[1]
    return {n for n, error in errors.items() if "fifth edition" in error.message} - found.keys()


def compare(sources: Sources, projections: Iterable[str] = tuple(PROJECTIONS)) -> Counts:
    """Compare with each projection, and with either path first."""
    counts = [
        BothPaths(PROJECTIONS[name], fast_first=fast_first).compare(sources)
        for name in projections
        for fast_first in (False, True)
    ]
    # With lines nothing is counted as declined; with the others it must not matter what is asked.
    return max(counts)
