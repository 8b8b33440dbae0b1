"""A loop over SaxonC's compiled queries: each query, for each document.

    python -m benchmarks.programs.transform_saxon DOCUMENTS WARMUP SUBSCRIPTIONS [--sample N]

``compile`` compiles the queries; ``transform`` is as in ``transform``, from bytes to a file.
"""

from __future__ import annotations

import json
import tempfile
from argparse import ArgumentParser
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
    parser = ArgumentParser()
    for name in ("documents", "warmup", "subscriptions"):
        parser.add_argument(name)
    parser.add_argument("--sample", type=int)
    options = parser.parse_args()
    documents = read_folder(options.documents)[: options.sample]
    pairs = read_subscriptions(options.subscriptions)
    phases = Phases()
    processor = load("saxonche", phases).PySaxonProcessor(license=False)
    compiled = []
    with phases("compile"):
        for id, text in pairs:
            xquery = processor.new_xquery_processor()
            xquery.set_property("!omit-xml-declaration", "yes")
            xquery.set_query_content(text)
            compiled.append((id, xquery))
    digest = Digest()
    counts = {"messages": 0}
    with tempfile.TemporaryFile("w") as file, phases("transform"):
        for number, document in enumerate(documents):
            tree = processor.parse_xml(xml_text=document.decode())
            found = []
            for id, text in run_all(compiled, tree):
                file.write(json.dumps([number, id, text]) + "\n")
                found.append(id)
            counts["messages"] += len(found)
            digest.add(str(found))
    counts["documents"] = len(documents)
    answer(phases, counts, version=str(processor.version), digest=str(digest))


def run_all(compiled: list[tuple[str, Any]], tree: Any) -> Any:
    """What each query makes of a document, but where nothing is in the constant element."""
    for id, xquery in compiled:
        xquery.set_context(xdm_item=tree)
        text = xquery.run_query_to_string()
        if not text.endswith("<result/>"):
            yield id, text


if __name__ == "__main__":
    main()
