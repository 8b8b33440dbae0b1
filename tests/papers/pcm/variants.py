"""All variants of OCM."""

from __future__ import annotations

from tamis_papers.pcm import PcmOptions

BITS = (1, 3, 16, 64)
OPTIONS = [
    *(PcmOptions(bits, parallel=parallel) for bits in BITS for parallel in ("tables", "events")),
    PcmOptions(filter_selection=False, parallel="tables"),
    PcmOptions(filter_selection=False, parallel="events"),
]
