"""What a user gets, timed to where it is in hand: single calls, ids, JSON, records, commands.

    python -m benchmarks.programs.edges calls|answers|texts|nested|ranges|records|commands

Phases are seconds of one call, one document or one pass, the least of several; the note says what
they come to. Answers are verified: one way against another, or against plain Python.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.programs.live import Documents, Events
from benchmarks.programs.protocol import Phases, answer

TURNS = 5


class Least:
    """Keeps the least time of several turns, by phase."""

    def __init__(self, phases: Phases) -> None:
        self.phases = phases
        self.notes: list[str] = []

    def __call__(
        self, phase: str, call: Callable[[], object], calls: int = 1, count: int = 1
    ) -> None:
        """Time a call that does so many things: the seconds of each."""
        call()
        times = []
        for _ in range(TURNS):
            start = perf_counter()
            for _ in range(calls):
                call()
            times.append((perf_counter() - start) / calls / count)
        self.phases.times[phase] = min(times)
        self.notes.append(f"{phase} {1e6 * min(times):,.1f} µs")

    def pass_over(self, phase: str, size: int, call: Callable[[], object]) -> None:
        """Time what goes over so many bytes, twice: the better one."""
        times = []
        for _ in range(2):
            start = perf_counter()
            call()
            times.append(perf_counter() - start)
        self.phases.times[phase] = min(times)
        self.notes.append(f"{phase} {size / 1e6 / min(times):,.0f} MB/s")


def calls(least: Least) -> int:
    """One small document, one event, one transformed document; beside many at once."""
    import tamis  # noqa: PLC0415

    made = Documents()
    matcher = tamis.compile(dict(enumerate(islice(made.subscriptions, 10_000))))
    inside = "<e1 v='5'><e5 v='7'/><e6 v='8'>x</e6></e1>" * 8
    document = f"<e0 v='1'>{inside}</e0>".encode()
    hundred = [document] * 100
    least("match", lambda: matcher.match(document).indices, 1_000)
    least("match-many", lambda: [m.indices for m in matcher.match_many(hundred)], 20, 100)
    (one,) = matcher.match_many([document])
    assert list(one) == list(matcher.match(document))
    events = Events()
    filters = tamis.compile_events(dict(enumerate(islice(events.subscriptions, 50_000))))
    event = events.inputs[0]
    least("match-event", lambda: filters.match(event).indices, 1_000)
    least("match-events", lambda: [*filters.match_many(events.inputs)], 20, len(events.inputs))
    (found,) = filters.match_many([event])
    assert list(found) == list(filters.match(event))
    texts = {f"t{n}": f"<r>{{for $a in /o/item[@n > {n}] return $a/name}}</r>" for n in range(10)}
    transformer = tamis.Transformer(texts)
    items = "".join(f"<item n='{n}'><name>n{n}</name></item>" for n in range(12))
    least("transform", lambda: list(transformer.transform(f"<o>{items}</o>")), 200)
    return 1


def answers(least: Least) -> int:
    """Documents of 3.9 KB with thousands of matches: to indices, ids and JSON."""
    import tamis  # noqa: PLC0415
    from benchmarks.programs.generate import MANUAL  # noqa: PLC0415
    from tamis.schema.graph import SchemaGraph  # noqa: PLC0415
    from tamis.schema.reader import parse_dtd  # noqa: PLC0415
    from tamis_workload import Documents as OfDtd  # noqa: PLC0415
    from tamis_workload import QueryOptions, queries_from_dtd  # noqa: PLC0415

    graph = SchemaGraph.of(parse_dtd(MANUAL))
    made = OfDtd(graph, size=3_900, fill=True)
    documents = [made.document(number) for number in range(200)]
    ways: dict[str, Callable[[Any], object]] = {
        "indices": lambda match: match.indices,
        "ids": list,
        "json": lambda match: match.json(),
    }
    for count in (10_000, 28_000):
        drawn = queries_from_dtd(graph, count, options=QueryOptions(), distinct=True)
        matcher = tamis.compile({f"s{n}": text for n, text in enumerate(drawn)})
        for name, way in ways.items():
            many = partial(_each, matcher.match_many, documents, way=way)
            least(f"{name}-{count}", many, 1, len(documents))
        every = list(matcher.match_many(documents))
        assert all(json.loads(match.json()) == list(match) for match in every)
        least.notes.append(f"{sum(map(len, every)) / 200:,.0f} matches each")
    return len(documents)


def texts(least: Least) -> int:
    """50,000 filters that ask for parts of one attribute, and 20,000 with lists of five."""
    import tamis  # noqa: PLC0415

    draw = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(4, 9))) for _ in range(60_000)]
    events = [{"a": " ".join(draw.choices(words, k=8))} for _ in range(500)]
    ways: dict[str, Callable[[str, str], bool]] = {
        "contains": str.__contains__,
        "suffix": str.endswith,
    }
    for operator, holds in ways.items():
        asked = dict(enumerate(words[:50_000]))
        matcher = tamis.compile_events({n: f'a {operator} "{word}"' for n, word in asked.items()})
        many = partial(_each, matcher.match_many, events, way=len)
        least(operator, many, 5, len(events))
        for event in events[:20]:
            expected = [n for n, word in asked.items() if holds(event["a"], word)]
            assert list(matcher.match(event)) == expected
    numbers = [{"n": draw.randrange(1_000)} for _ in range(2_000)]
    lists = [draw.sample(range(1_000), 5) for _ in range(20_000)]
    matcher = tamis.compile_events(
        {n: f"n in ({', '.join(map(str, items))})" for n, items in enumerate(lists)}
    )
    least("in", partial(_each, matcher.match_many, numbers, way=len), 5, len(numbers))
    for one in numbers[:20]:
        true = [n for n, items in enumerate(lists) if one["n"] in items]
        assert list(matcher.match(one)) == true
    return len(events)


def nested(least: Least) -> int:
    """Filters on what is inside of events, with ``not`` and patterns; dicts and lines of JSON."""
    import tamis  # noqa: PLC0415

    draw = random.Random(4)
    events = [
        {
            "order": {"id": draw.randrange(10_000), "total": draw.randrange(100)},
            "items": [
                {"sku": f"s{draw.randrange(10_000)}", "price": draw.randrange(100)}
                for _ in range(3)
            ],
            "note": " ".join(draw.choices(("red", "green", "blue", "fast"), k=6)),
        }
        for _ in range(2_000)
    ]
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    sets: dict[str, tuple[Callable[[int], str], Callable[[Any, int], bool]]] = {
        "paths": (
            lambda n: f"order.id = {n} and not order.total > {n % 50}",
            lambda event, n: event["order"]["id"] == n and not event["order"]["total"] > n % 50,
        ),
        "elements": (
            lambda n: f'items[].(sku = "s{n}" and price > {n % 50})',
            lambda event, n: any(
                each["sku"] == f"s{n}" and each["price"] > n % 50 for each in event["items"]
            ),
        ),
        "patterns": (
            lambda n: f'order.id = {n} and note like "*red*blue*"',
            lambda event, n: (
                event["order"]["id"] == n
                and "red" in event["note"]
                and "blue" in event["note"][event["note"].index("red") :]
            ),
        ),
    }
    for name, (written, holds) in sets.items():
        matcher = tamis.compile_events({n: written(n) for n in range(10_000)})
        least(name, partial(_each, matcher.match_many, events, way=len), 5, len(events))
        least(f"{name}-lines", partial(_each, matcher.match_ndjson, lines, way=len), 5, len(events))
        for event in events[:20]:
            expected = [n for n in range(10_000) if holds(event, n)]
            assert list(matcher.match(event)) == expected
    return len(events)


def _each(match: Callable[..., Any], *given: Any, way: Callable[[Any], object]) -> list[object]:
    """What each match comes to."""
    return [*map(way, match(*given))]


def bibliography(size: int) -> Iterator[tuple[int, int, str]]:
    """Records of a bibliography: the year, the pages and the record."""
    draw = random.Random(1)
    for number in range(size // 148):
        year, pages = draw.randrange(1960, 2020), draw.randrange(400)
        yield (
            year,
            pages,
            f"<article key='k{number}'><author>Someone {number % 977}</author><title>About "
            f"something {number % 1013} and so on</title><year>{year}</year>"
            f"<pages>{pages}</pages></article>\n",
        )


def ranges(least: Least) -> int:
    """40,000 pairs of ranges on one document of 24 MB, of which nearly all become true."""
    import tamis  # noqa: PLC0415

    draw = random.Random(2)
    rows = list(bibliography(24_000_000))
    document = f"<dblp>\n{''.join(text for _, _, text in rows)}</dblp>".encode()
    pairs = [(draw.randrange(1960, 2020), draw.randrange(400)) for _ in range(40_000)]
    matcher = tamis.compile(
        {n: f"/dblp/article[year > {y}][pages < {p}]" for n, (y, p) in enumerate(pairs)}
    )
    least.pass_over("ranges", len(document), lambda: len(matcher.match(document)))
    fewest = dict.fromkeys(range(1959, 2021), 400)  # the fewest pages in a later year
    for year, pages, _ in rows:
        fewest[year - 1] = min(fewest[year - 1], pages)
    for year in range(2018, 1958, -1):
        fewest[year] = min(fewest[year], fewest[year + 1])
    expected = [n for n, (year, pages) in enumerate(pairs) if fewest[year] < pages]
    assert list(matcher.match(document)) == expected
    return 1


def records(least: Least) -> int:
    """600,000 records of 150 bytes: ids in the library, and the command line."""
    import tamis  # noqa: PLC0415

    rows = list(islice(bibliography(100_000_000), 600_000))
    data = f"<dblp>\n{''.join(text for _, _, text in rows)}</dblp>".encode()
    expressions = {
        "late": "/article[year > 2010]",
        "short": "/article[pages < 20]",
        "one": "/article[author = 'Someone 5']",
    }
    matcher = tamis.compile(expressions)
    for threads in (1, 2):
        ids = partial(_each, matcher.match_records, data, "article", threads, way=list)
        least.pass_over(f"records-{threads}", len(data), ids)
    found = [list(match) for match in matcher.match_records(data, "article")]
    assert [("late" in ids, "short" in ids) for ids in found] == [
        (year > 2010, pages < 20) for year, pages, _ in rows
    ]
    with tempfile.TemporaryDirectory() as folder:
        file, texts = Path(folder, "records.xml"), Path(folder, "s.tsv")
        file.write_bytes(data)
        texts.write_text("".join(f"{id}\t{text}\n" for id, text in expressions.items()))
        command = ["match", "-s", texts, "--record", "article", "--matching-only", file]
        least.pass_over("command-records", len(data), lambda: tamis_command(folder, *command))
        written = Path(folder, "out").read_text().count("\n")
        assert written == sum(map(bool, found))
        command = ["select", "/dblp/article/title", file]
        least.pass_over("command-select", len(data), lambda: tamis_command(folder, *command))
        assert Path(folder, "out").read_text().count("<title>") == len(rows)
        command = ["select", "//article[year > 2010]/author", file]
        least.pass_over("command-select-twig", len(data), lambda: tamis_command(folder, *command))
    return len(rows)


def commands(least: Least) -> int:
    """10,000 files with 10,000 paths: the command beside the library."""
    import tamis  # noqa: PLC0415

    made = Documents()
    texts = {f"s{n}": text for n, text in enumerate(islice(made.subscriptions, 10_000))}
    matcher = tamis.compile(texts)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "in", f"{number:05}.xml") for number in range(10_000)]
        files[0].parent.mkdir()
        size = 0
        for number, path in enumerate(files):
            size += path.write_bytes(made.inputs[number % len(made.inputs)].encode())
        Path(folder, "s.tsv").write_text("".join(f"{id}\t{text}\n" for id, text in texts.items()))
        least.pass_over("library", size, lambda: [*map(list, matcher.match_many(files, 2))])
        command = ["match", "-s", Path(folder, "s.tsv"), files[0].parent]
        least.pass_over("command", size, lambda: tamis_command(folder, *command))
        lines = Path(folder, "out").read_text().splitlines()
        expected = [*map(list, matcher.match_many(files))]
        assert [json.loads(line)["matches"] for line in lines] == expected
    return len(files)


def tamis_command(folder: str, *arguments: object) -> None:
    """Run the command line; what it writes is in ``out``."""
    command = [str(Path(sys.executable).with_name("tamis")), *map(str, arguments)]
    with open(Path(folder, "out"), "wb") as out:
        subprocess.run(command, stdout=out, check=True)


def main() -> None:
    phases = Phases()
    with phases("import"):
        import tamis  # noqa: F401, PLC0415
    least = Least(phases)
    every = (calls, answers, texts, nested, ranges, records, commands)
    count = {each.__name__: each for each in every}[sys.argv[1]](least)
    answer(phases, {"documents": count}, note="; ".join(least.notes))


if __name__ == "__main__":
    main()
