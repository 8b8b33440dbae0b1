"""The public query sets of ``../shared/data/xpath-sets``, and what becomes of each query.

python -m tests.matching.xpath_sets      writes xpath_sets_refused.toml, the committed list
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from tamis.core.errors import SubscriptionError
from tamis.core.limits import DEFAULT_LIMITS
from tamis.language.grammar import parse_syntax, walk
from tamis.language.xpath import parse
from tests.support.corpora import ROOT

REFUSED = Path(__file__).parent / "xpath_sets_refused.toml"

# Documents of the sets that are at hand, by the last part of their path.
DOCUMENTS = ("usecases", "xmark")


def queries() -> Iterator[tuple[str, dict[str, str], str]]:
    """Each distinct query: its text, its namespaces, and the document that it was written for."""
    seen = set()
    for path in sorted((ROOT / "xpath-sets").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            namespaces = {prefix: uri for prefix, uri in row.get("ns", {}).items() if prefix}
            key = (row["xpath"], tuple(sorted(namespaces.items())), Path(row["doc"]).name)
            if key not in seen:
                seen.add(key)
                yield row["xpath"], namespaces, key[2]


def construct(error: SubscriptionError) -> str:
    """What a refusal is about, without the names in it."""
    return re.sub(r" \(found .*| \d+ given$", "", error.message.split(", found")[0])


def refused() -> dict[str, list[str]]:
    """The queries that are refused, by the construct that they are refused for."""
    found: dict[str, list[str]] = {}
    for text, namespaces, _ in queries():
        try:
            parse(text, namespaces)
        except SubscriptionError as error:
            texts = found.setdefault(f"{error.code}: {construct(error)}", [])
            if text not in texts:
                texts.append(text)
    return {key: sorted(found[key]) for key in sorted(found)}


def invented_document(text: str, namespaces: dict[str, str], seed: int) -> bytes:
    """A document of the names and strings of a query, so that it has a chance to be true of it."""
    draw = random.Random(f"{seed} {text}")
    names, strings = ["x"], ["", "1", "2.5", " a  b "]
    for node in walk(parse_syntax(text, DEFAULT_LIMITS)):
        test = getattr(node, "test", None)
        if test and not test.endswith(")") and "*" not in test:
            names.append(test)
        value = getattr(node, "value", None)
        if value is not None:
            strings.append(str(value).removesuffix(".0"))
    declared = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in namespaces.items())

    def escaped() -> str:
        value = draw.choice(strings)
        return value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")

    def element(depth: int) -> str:
        name = draw.choice(names)
        attributes = {draw.choice(names): escaped() for _ in range(draw.randrange(3))}
        written = "".join(f' {key}="{value}"' for key, value in attributes.items())
        if depth == 0:
            written = declared + written
        content = "".join(
            draw.choice([escaped(), "<!--c-->", "<?p d?>"])
            if depth > 4 or draw.random() < 0.3
            else element(depth + 1)
            for _ in range(draw.randrange(4) + (depth == 0))
        )
        return f"<{name}{written}>{content}</{name}>"

    return element(0).encode()


def main() -> None:
    """Write the committed list."""
    lines = ["# Queries of the public sets that are refused, by construct. Written by", "#"]
    lines += ["#     python -m tests.matching.xpath_sets", ""]
    for key, texts in refused().items():
        lines.append(f"{json.dumps(key)} = [")
        lines += [f"    {json.dumps(text)}," for text in texts]
        lines += ["]", ""]
    REFUSED.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
