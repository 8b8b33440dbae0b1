"""A sample of the comparisons of both paths, for processes that are set up otherwise."""

from __future__ import annotations

import hashlib
import logging
import os

from tamis.core.kernel import declare
from tamis.documents.source import Source
from tests.documents import adversarial_documents, borders
from tests.documents.both_paths import ALL, BothPaths, compare
from tests.documents.fuzz import Run, fuzz


def main() -> None:
    logging.getLogger("tamis").setLevel(logging.ERROR)
    sources = [Source(data) for data in adversarial_documents.DOCUMENTS if b"encoding" not in data]
    print("adversarial", compare(sources))
    shapes = (borders.shaped(shape, n) for shape in borders.SHAPES for n in range(55, 75))
    print("lengths", borders.compare(shapes, ("all", "nothing")))
    text = (data for place in ("text", "value") for data in borders.placed(place))
    print("places", borders.compare(text, ("all",)))
    print("fuzzed", fuzz(Run(7, ("hand",)), 5_000, processes=1)["accepted"])
    batch, _ = BothPaths(ALL).anew(sources).fast
    digest = hashlib.sha256()
    for array in batch:
        digest.update(array.tobytes())
    print("digest", digest.hexdigest())
    is_checked = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
    print("kernels", declare.mode() + (", every index checked" if is_checked else ""))


if __name__ == "__main__":
    main()
