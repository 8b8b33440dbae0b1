"""How events are answered: encoded for the names of some segments, and matched by these.

``GeneralForm`` answers all events. ``SingularForm`` has the subscriptions as they are for events
that have no list at any path that is written with ``[]`` (:mod:`tamis.language.singular`): such
events take a tenth of the time. It leaves others, and what is in error, to the general form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tamis.core.arrays import Int64, starts_of
from tamis.core.index.matches import Listing
from tamis.core.index.matchset import MatchSet
from tamis.core.index.segments import Segment
from tamis.events.encode import Encoder
from tamis.events.matches import EventMatches
from tamis.events.model import By, EventBatch
from tamis.events.segmented import EventProgram, Segmented, names_left


class GeneralForm:
    """Answers events."""

    def __init__(self, segmented: Segmented, encoder: Encoder) -> None:
        self.segmented, self.encoder = segmented, encoder

    def batch(self, batch: EventBatch, by: By, lines: Int64 | None = None) -> EventMatches:
        """The matches of events that are encoded."""
        return EventMatches(*self.segmented.match(batch, by), batch.errors, lines)

    def one(self, event: Mapping[str, Any]) -> EventMatches | None:
        """The subscriptions of one event, if kernels alone can find them."""
        numbers = self.segmented.match_one(event, self.encoder)
        if numbers is None:
            return None
        return EventMatches.of_numbers(self.segmented.listing("subscription"), numbers)

    def events(self, events: Sequence[Mapping[str, Any]], by: By) -> EventMatches:
        """The matches of mappings."""
        return self.batch(self.encoder.events(events), by)

    def lines(self, data: bytes, first_line: int, by: By) -> EventMatches:
        """The matches of whole lines of JSON."""
        batch, lines = self.encoder.ndjson(data, first_line)
        return self.batch(batch, by, lines)

    def rows(self, batch: Any, by: By) -> EventMatches:
        """The matches of the rows of a record batch of pyarrow's."""
        return self.batch(self.encoder.arrow(batch), by)


class SingularForm(GeneralForm):
    """Answers events in which no list is met; ``general`` answers others."""

    def __init__(self, segmented: Segmented, encoder: Encoder, general: GeneralForm) -> None:
        super().__init__(segmented, encoder)
        self.general = general
        self._listings: dict[By, Listing] = {}

    def events(self, events: Sequence[Mapping[str, Any]], by: By) -> EventMatches:
        """The matches of mappings."""
        batch, left = self.encoder.reader.events(events)
        if not left:
            return self.batch(batch, by)
        others = self.general.encoder.events([events[number] for number in left])
        return self._both(batch, others, left, by)

    def lines(self, data: bytes, first_line: int, by: By) -> EventMatches:
        """The matches of whole lines of JSON."""
        batch, lines, left = self.encoder.reader.lines(data, first_line)
        if not left:
            return self.batch(batch, by, lines)
        others = self.general.encoder.ndjson(b"\n".join(left.values())).batch
        return self._both(batch, others, list(left), by, lines)

    def rows(self, batch: Any, by: By) -> EventMatches:
        """The matches of the rows of a record batch of pyarrow's."""
        return self.events(self.general.encoder.rows(batch), by)

    def _both(
        self,
        batch: EventBatch,
        others: EventBatch,
        left: Sequence[int],
        by: By,
        lines: Int64 | None = None,
    ) -> EventMatches:
        """The matches of events, of which ``others`` have these numbers."""
        listing, found = self.segmented.match(batch, by)
        others_listing, of_others = self.general.segmented.match(others, by)
        if by not in self._listings:
            self._listings[by] = listing.beside(others_listing)
        errors = dict(batch.errors)
        for number, error in others.errors.items():
            line = None if lines is None else int(lines[left[number]])
            errors[left[number]] = type(error)(error.message, line)
        is_left = np.zeros(batch.events, np.bool_)
        is_left[np.array(left)] = True
        every = [_only(each, ~is_left) for each in found] + [
            _at(each, is_left) for each in of_others
        ]
        return EventMatches(self._listings[by], every, dict(sorted(errors.items())), lines)


def singular_form(
    segments: Sequence[Segment[EventProgram]], general: GeneralForm, version: int
) -> GeneralForm:
    """The singular form of some segments; the general one where no subscription has another.

    Args:
        version: of the live set.
    """
    limits = general.encoder.limits
    own = [Segment(each.compiled.singular(limits), each.is_removed) for each in segments]
    if all(one.compiled is other.compiled for one, other in zip(own, segments, strict=True)):
        return general
    names = tuple(dict.fromkeys(chain.from_iterable(map(names_left, own))))
    encoder = general.encoder.singular(names)
    return SingularForm(Segmented(own, names, version), encoder, general)


def _only(matches: MatchSet, is_asked: Any) -> MatchSet:
    """Without the matches of other documents."""
    sizes = np.diff(matches.document_starts)
    set_ids = matches.set_ids[np.repeat(is_asked, sizes)]
    return matches._replace(document_starts=starts_of(sizes * is_asked), set_ids=set_ids)


def _at(matches: MatchSet, is_asked: Any) -> MatchSet:
    """Those of some documents, as those of all."""
    sizes = np.zeros(len(is_asked), np.int64)
    sizes[is_asked] = np.diff(matches.document_starts)
    return matches._replace(document_starts=starts_of(sizes))
