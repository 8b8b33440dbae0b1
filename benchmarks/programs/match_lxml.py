"""A loop over lxml's compiled XPath: what one would write without Tamis.

python -m benchmarks.programs.match_lxml DOCUMENTS WARMUP SUBSCRIPTIONS
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.programs.protocol import (
    Digest,
    Phases,
    answer,
    load,
    read_folder,
    read_subscriptions,
)


def main() -> None:
    documents, warmup, subscriptions = sys.argv[1:]
    phases = Phases()
    etree = load("lxml.etree", phases)
    pairs = read_subscriptions(subscriptions)
    with phases("compile"):
        compiled = [(id, etree.XPath(f"boolean({expression})")) for id, expression in pairs]
    with phases("cold"):
        match_all(etree, compiled, read_folder(warmup), Phases())
    counts, digest = match_all(etree, compiled, read_folder(documents), phases)
    libxml = ".".join(map(str, etree.LIBXML_VERSION))
    answer(
        phases,
        counts,
        version=f"lxml {etree.__version__}, libxml2 {libxml}",
        engine="xpath",
        digest=str(digest),
    )


def match_all(
    etree: Any, compiled: list[tuple[str, Any]], documents: Sequence[bytes], phases: Phases
) -> tuple[dict[str, int], Digest]:
    """Answer documents; gives what was counted, and the hash of the answers."""
    counts = {"documents": 0, "matches": 0}
    digest = Digest()
    for data in documents:
        with phases("parse"):
            tree = etree.fromstring(data).getroottree()
        with phases("match"):
            found = [xpath(tree) for _, xpath in compiled]
        with phases("report"):
            ids = [id for (id, _), is_true in zip(compiled, found, strict=True) if is_true]
        digest.add(" ".join([str(counts["documents"]), *ids]))
        counts["documents"] += 1
        counts["matches"] += len(ids)
    return counts, digest


if __name__ == "__main__":
    main()
