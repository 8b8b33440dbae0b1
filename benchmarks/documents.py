"""Makes the documents and subscriptions of one repetition of a workload, in a folder.

    python -m benchmarks.documents DECLARATION FOLDER

The declaration is JSON, made by ``measuring.py`` of a workload in TOML. ``FOLDER/documents`` gets
what is measured, ``FOLDER/warmup`` documents of the same kind to begin with, and
``FOLDER/subscriptions.tsv`` the subscriptions, if any are declared. No two of all these documents
are equal, and each repetition gets others. Prints what was made, as JSON, or why it cannot be made:
``{"skip": …}``.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

Table = Mapping[str, Any]

WARMUP_BYTES = 1_000_000  # of documents to warm up with, some
_SEEDS = 1_000_000  # of one repetition, before those of the next
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_TEXT = re.compile(rb">[^<>&]+")


class AbsentError(Exception):
    """What a workload is made of is not at hand."""


def dblp(table: Table, seed: int, data: Path) -> Iterator[bytes]:
    """Bibliographies without end, of ``size`` bytes or of ``records``."""
    del data
    from tamis_workload.documents.dblp import dblp as bibliography  # noqa: PLC0415 - imports kernels

    while True:
        yield b"".join(bibliography(table.get("size"), table.get("records"), seed))
        seed += 1


def dtd(table: Table, seed: int, data: Path) -> Iterator[bytes]:
    """Documents of a DTD without end, of ``size`` bytes and ``depth``.

    Where ``repeats`` says how often elements are repeated, it is up to this how large they are.
    """
    from tamis_workload import DocumentOptions, Documents, Values  # noqa: PLC0415 - slow to import

    repeats = table.get("repeats", {})
    options = DocumentOptions(
        optional=table.get("optional", 0.5),
        repeats=tuple(repeats.get("", (0, 3))),
        repeats_of={name: tuple(range) for name, range in repeats.items() if name},
        values=Values(table.get("values", 10)),
    )
    made = Documents(
        graph(table, data),
        options=options,
        depth=table["depth"],
        size=table["size"],
        fill="repeats" not in table,
        seed=seed,
    )
    number = 0
    while True:
        yield made.document(number)
        number += 1


def alternating(table: Table, seed: int, data: Path) -> Iterator[bytes]:
    """A document of each of ``parts`` in turn, without end."""
    streams = [_KINDS[part["kind"]](part, seed, data) for part in table["parts"]]
    for some in zip(*streams, strict=True):
        yield from some


_KINDS = {"dblp": dblp, "dtd": dtd, "alternating": alternating}
"""Of documents that are drawn."""


def graph(table: Table, data: Path) -> Any:
    """The graph of ``dtd``, a text, or of ``dtd_file``, below the folder of real documents.

    Raises:
        AbsentError: there is no such file.
    """
    from tamis.schema.graph import SchemaGraph  # noqa: PLC0415 - slow to import
    from tamis.schema.reader import parse_dtd, read_dtd  # noqa: PLC0415

    if "dtd" in table:
        return SchemaGraph.of(parse_dtd(table["dtd"]))
    path = data / table["dtd_file"]
    if not path.exists():
        raise AbsentError(f"the DTD {table['dtd_file']} is not in {data.name}/")
    return SchemaGraph.of(read_dtd(path))


def corpus(table: Table, data: Path) -> list[bytes]:
    """The real documents of a folder, as they are.

    Raises:
        AbsentError: there are none.
    """
    paths = sorted((data / table["folder"]).glob(table.get("pattern", "*.xml")))
    if not paths:
        raise AbsentError(f"the real documents {table['folder']} are not in {data.name}/")
    return [path.read_bytes() for path in paths]


def copies(originals: list[bytes], size: int, repetition: int) -> Iterator[bytes]:
    """Altered copies of documents, ``size`` bytes at least, each whole set in an order of its own.

    Raises:
        ValueError: there are no more alterations.
    """
    wanted = -(-size // sum(map(len, originals)))
    if wanted > len(_LETTERS) - 1:
        raise ValueError(f"{wanted} copies of documents, but there are 25 ways to alter them")
    for copy in range(wanted):
        turn = (repetition * wanted + copy) % 25 + 1
        order = random.Random(repetition * 25 + copy).sample(originals, len(originals))
        yield from (altered(data, turn) for data in order)


def altered(data: bytes, turn: int) -> bytes:
    """A document with other text of the same length: letters moved on by ``turn`` in the alphabet.

    Of each text, the part before the first reference is altered. Tags, attributes, CDATA sections
    without ``>`` and all bytes that are no ASCII letters stay as they are.

    >>> altered(b"<a b='c'>Zoo &amp; zoo</a>", 1)
    b"<a b='c'>App &amp; zoo</a>"
    """
    moved = _LETTERS[turn:] + _LETTERS[:turn]
    letters = bytes.maketrans(
        (_LETTERS + _LETTERS.upper()).encode(), (moved + moved.upper()).encode()
    )
    return _TEXT.sub(lambda text: text[0].translate(letters), data)


def make(declared: Table, folder: Path) -> dict[str, int]:
    """Write all of a repetition; gives the number, the bytes and the seed of what is measured."""
    table = declared["documents"]
    repetition = declared["repetition"]
    data = Path(declared["data"])
    documents: Iterator[bytes]
    warmup: Iterator[bytes]
    if table["kind"] == "corpus":
        originals = corpus(table, data)
        seed = repetition
        if table.get("halves"):  # what is measured has not even a copy in what is not
            random.Random(seed).shuffle(originals)
            half = len(originals) // 2
            warmup = iter(originals[half:])
            documents = copies(originals[:half], table["size"], seed)
        else:
            warmup = iter(originals)
            documents = copies(originals, table["size"], seed)
    elif table["kind"] in _KINDS:
        kind = _KINDS[table["kind"]]
        seed = (table.get("seed", 0) + repetition + 1) * _SEEDS
        documents = islice(kind(table, seed, data), table.get("number", 1))
        most = table.get("warmup", WARMUP_BYTES)
        smaller = {**table, "size": min(table["size"], most)} if "size" in table else table
        warmup = kind(smaller, table.get("seed", 0), data)
    else:
        raise ValueError(f"documents of the kind {table['kind']}, which nobody knows how to make")
    made = _write(documents, folder / "documents")
    _write(_some(warmup, table.get("warmup")), folder / "warmup")
    if declared["subscriptions"]:
        expressions = _subscriptions(declared["subscriptions"], table, data)
        with (folder / "subscriptions.tsv").open("w", encoding="utf-8") as file:
            file.writelines(f"s{number}\t{text}\n" for number, text in enumerate(expressions))
    return {**made, "seed": seed}


def _some(documents: Iterator[bytes], wanted: int | None) -> Iterator[bytes]:
    """Documents of so many bytes together, some; else a hundred at most, and enough to warm up."""
    size = 0
    most = WARMUP_BYTES if wanted is None else wanted
    for data in islice(documents, 100 if wanted is None else None):
        yield data
        size += len(data)
        if size >= 0.99 * most:  # generators stop short of it
            return


def _write(documents: Iterator[bytes], folder: Path) -> dict[str, int]:
    folder.mkdir(parents=True)
    number = size = 0
    for data in documents:
        (folder / f"{number:06}.xml").write_bytes(data)
        number += 1
        size += len(data)
    return {"documents": number, "bytes": size}


def _subscriptions(wanted: Table, table: Table, data: Path) -> Iterator[str]:
    """Draw subscriptions: ``kind`` says from what.

    * "documents" (where none is given): from documents that are neither measured nor warmed up
      with.
    * "templates": expressions with values of such documents in them.
    * "mixed": several of these, ``parts``, one after the other.
    * "paths", "twigs", "transformations": from a DTD, their own or that of the documents, with the
      rest as options of the generator. Twigs of several ``sizes``, pairs of nodes and splits, are
      as many of each.
    """
    kind = wanted.get("kind", "documents")
    if kind == "documents":
        return _from_documents(wanted, table, data)
    if kind == "templates":
        return _from_templates(wanted, table, data)
    if kind == "mixed":
        return chain.from_iterable(_subscriptions(part, table, data) for part in wanted["parts"])
    from tamis_workload import (  # noqa: PLC0415 - slow to import
        QueryOptions,
        TransformationOptions,
        TwigOptions,
        Values,
        queries_from_dtd,
        transformations_from_dtd,
        twigs_from_dtd,
    )

    schema = graph(wanted if wanted.keys() & {"dtd", "dtd_file"} else table, data)
    known = ("kind", "count", "distinct", "seed", "sizes", "dtd", "dtd_file")
    options = {key: value for key, value in wanted.items() if key not in known}
    count, is_distinct, seed = wanted["count"], wanted.get("distinct", False), wanted.get("seed", 0)
    if kind == "paths":
        if "depth" in options:
            options["depth"] = tuple(options["depth"])
        made = queries_from_dtd(
            schema, count, options=QueryOptions(**options), distinct=is_distinct, seed=seed
        )
        return iter(made)
    if kind == "transformations":
        drawn = TransformationOptions(values=Values(table.get("values", 10)), **options)
        return iter(
            transformations_from_dtd(schema, count, options=drawn, distinct=is_distinct, seed=seed)
        )
    if kind != "twigs":
        raise ValueError(f"subscriptions of the kind {kind}, which nobody knows how to make")
    sizes = wanted["sizes"]
    shares = [len(range(number, count, len(sizes))) for number in range(len(sizes))]
    return chain.from_iterable(
        twigs_from_dtd(
            schema,
            share,
            options=TwigOptions(nodes=nodes, splits=splits, **options),
            distinct=is_distinct,
            seed=seed,
        )
        for share, (nodes, splits) in zip(shares, sizes, strict=True)
    )


def _from_documents(wanted: Table, table: Table, data: Path) -> Iterator[str]:
    """Paths are written as absolute ones, since engines do not agree on where others begin."""
    from tamis.language.xpath import absolute_xpath  # noqa: PLC0415 - slow to import
    from tamis_workload.observed.generator import draw_from_documents  # noqa: PLC0415

    if table["kind"] == "corpus":
        raise ValueError("subscriptions are drawn from generated documents only")
    kind = _KINDS[table["kind"]]
    seed = table.get("seed", 0) + _SEEDS // 2
    source = list(islice(kind(table, seed, data), wanted.get("from", 20)))
    drawn = draw_from_documents(
        source, wanted["count"], matching=wanted["matching"], seed=wanted.get("seed", 0),
        one_line=True,
    )  # fmt: skip
    return (absolute_xpath(expression) for expression in drawn.expressions)


_FIELD = re.compile(r"\{(\w+) (\w+)(?: (\d+))?\}")
_WORDS_MAX = 3


def _from_templates(wanted: Table, table: Table, data: Path) -> Iterator[str]:
    """As many distinct expressions as ``count``, of ``templates`` in turn.

    ``{value author}`` in one is the text of some element ``author``, as a literal; ``{number
    year}`` is a number; ``{begin title}`` some words at its beginning, and ``{part title}`` within.
    They are of ``from`` documents of the kind that is measured, with other seeds. ``{between 1 9}``
    is a whole number from 1 to 9.
    """
    draw = random.Random(wanted.get("seed", 0))
    source = {"dblp": dblp, "dtd": dtd}[table["kind"]](table, _SEEDS // 2, data)
    text = b"".join(islice(source, wanted.get("from", 1))).decode()
    templates = wanted["templates"]
    fields = [field for template in templates for field in _FIELD.findall(template)]
    names = {name for kind, name, _ in fields if kind != "between"}
    texts = {
        name: list(dict.fromkeys(re.findall(rf"<{name}>([^<&\"]+)</{name}>", text)))
        for name in sorted(names)
    }
    seen: set[str] = set()
    for attempt in range(100 * wanted["count"]):
        made = _FIELD.sub(
            lambda field: (
                str(draw.randint(int(field[2]), int(field[3])))
                if field[1] == "between"
                else _literal(field[1], draw.choice(texts[field[2]]), draw)
            ),
            templates[attempt % len(templates)],
        )
        if made not in seen:
            seen.add(made)
            yield made
        if len(seen) == wanted["count"]:
            return
    raise ValueError(f"{len(seen)} distinct expressions, not {wanted['count']}: make `from` larger")


def _literal(kind: str, text: str, draw: random.Random) -> str:
    """A literal made of a text."""
    words = text.split(" ")
    if kind == "number":
        return text
    if kind == "begin":
        text = " ".join(words[: draw.randint(1, _WORDS_MAX)])
    elif kind == "part":
        first = draw.randrange(len(words))
        text = " ".join(words[first : first + draw.randint(1, _WORDS_MAX)])
    elif kind != "value":
        raise ValueError(f"{{{kind} …}} in a template: write value, number, begin, part or between")
    return f'"{text}"'


def main() -> None:
    declared, folder = sys.argv[1:]
    try:
        made = make(json.loads(declared), Path(folder))
        os.sync()  # or the disk is busy with them while the first program is measured
        print(json.dumps(made))
    except AbsentError as reason:
        print(json.dumps({"skip": str(reason)}))


if __name__ == "__main__":
    main()
