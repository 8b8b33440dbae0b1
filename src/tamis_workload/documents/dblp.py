"""A bibliography like DBLP's, of any size: valid by DBLP's DTD, some 16 bytes an event.

The kinds of records, their fields and the lengths of these are those of the real one, by and large;
there are 200,000 authors, and names and titles are drawn from lists of real words by Zipf's law.
Each field is drawn by itself: a key may come twice, and a year need not be that of the volume.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

from tamis.core.errors import UsageError
from tamis_workload.documents.kernels import Template
from tamis_workload.documents.template import SIZE_MAX, Bounds, Expansion, TemplateBuilder
from tamis_workload.draws import FIRST_NAMES, JOINING_WORDS, LAST_NAMES, TITLE_WORDS, VENUES, Values

HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_LEVELS = 6
_EMPTY_BYTES = len("<dblp>\n</dblp>\n")
_AUTHORS = 200_000


def dblp(size: int | None = None, records: int | None = None, seed: int = 0) -> Iterator[bytes]:
    """One document, in pieces of some mebibyte.

    Args:
        size: bytes of the document, at most; the last records get shorter so that it fits.
        records: how many publications there are. Either this or ``size`` has to be given.
        seed: another one makes another document.

    Raises:
        UsageError: neither is given, or both are; the size is too small for any document.

    >>> document = b"".join(dblp(records=2))
    >>> document.count(b"<title>")
    2
    """
    if (size is None) == (records is None):
        raise UsageError("give either size or records")
    if size is None:
        bounds = Bounds(_LEVELS, SIZE_MAX, records=records or 0)
    elif size < len(HEAD) + _EMPTY_BYTES:
        raise UsageError(
            f"a bibliography has {len(HEAD) + _EMPTY_BYTES} bytes at least, not {size:,}"
        )
    else:
        bounds = Bounds(_LEVELS, size - len(HEAD), fill=True)
    return _pieces(_expansion(bounds), seed)


@lru_cache(maxsize=4)
def _expansion(bounds: Bounds) -> Expansion:
    """Kept, since many small bibliographies would take longer to begin than to write."""
    return Expansion(template(), bounds)


def _pieces(expansion: Expansion, seed: int) -> Iterator[bytes]:
    yield HEAD
    yield from expansion.pieces(seed, 0)


@cache
def authors() -> Values:
    """The names of authors, the most productive first."""
    pairs = len(FIRST_NAMES) * len(LAST_NAMES)
    names = []
    for number in range(_AUTHORS):
        pair = number * 4099 % pairs  # a prime, so that all pairs come before one comes again
        last, first = divmod(pair, len(FIRST_NAMES))
        initial = f" {chr(64 + number // pairs)}." if number >= pairs else ""
        names.append(f"{FIRST_NAMES[first]}{initial} {LAST_NAMES[last]}")
    return Values.of(tuple(names), skew=0.7)


@cache
def years() -> Values:
    """The years of publication, 2026 the likeliest."""
    return Values.of(tuple(str(2026 - back) for back in range(70)), skew=0.6)


@cache
def template() -> Template:
    """The template of the whole bibliography."""
    return _Bibliography().template()


class _Bibliography:
    def __init__(self) -> None:
        self.builder = TemplateBuilder()
        value = self.builder.value
        self.author = value(authors())
        self.last_name = value(Values.of(LAST_NAMES, skew=0.5))
        self.year = value(years())
        self.short_year = value(
            Values.of(tuple(f"{year % 100:02}" for year in range(2026, 1956, -1)))
        )
        self.venue = value(Values.of(tuple(name for name, _ in VENUES), skew=0.8))
        self.venue_key = value(Values.of(tuple(key for _, key in VENUES), skew=0.8))
        self.word = value(Values.of(TITLE_WORDS, skew=0.6))
        self.joining = value(Values.of(JOINING_WORDS, skew=0.8))
        self.small = value(Values(60, skew=0.3))
        self.pages = value(
            Values.of(tuple(f"{n * 13 % 1900}-{n * 13 % 1900 + 1 + n % 24}" for n in range(9_000)))
        )
        self.date = value(Values.of(tuple(
            f"{2002 + n % 24}-{1 + n % 12:02}-{1 + n * 5 % 28:02}" for n in range(2_000)
        )))  # fmt: skip
        self.digits = value(Values.of(tuple(f"{n:05}" for n in range(100_000))))

    def template(self) -> Template:
        build = self.builder
        journal = self.record("article", "journals", 0.9, [
            self.field("pages", self.pages, 0.85), self.field("year", self.year),
            self.field("volume", self.small), self.field("journal", self.venue),
            self.field("number", self.small, 0.9), self.ee(), self.url("journals"), self.cites(),
        ])  # fmt: skip
        conference = self.record("inproceedings", "conf", 0.98, [
            self.field("pages", self.pages, 0.9), self.field("year", self.year),
            self.field("booktitle", self.venue), self.ee(),
            self.field("crossref", self.path("conf", self.year), 0.2), self.url("conf"),
            self.cites(),
        ])  # fmt: skip
        chapter = self.record("incollection", "books", 1.0, [
            self.field("pages", self.pages, 0.9), self.field("year", self.year),
            self.field("booktitle", self.venue), self.ee(), self.url("books"),
        ])  # fmt: skip
        thesis = self.record("phdthesis", "phd", 1.0, [
            self.field("year", self.year), self.field("school", self.venue), self.ee(),
        ])  # fmt: skip
        kinds = [journal] * 8 + [conference] * 10 + [chapter, thesis]
        records = build.loop(build.choice(*kinds), 0, 0, grows=True)
        return build.build(
            build.element(build.sequence(build.text("<dblp>\n"), records, build.text("</dblp>\n")))
        )

    def record(self, name: str, group: str, has_authors: float, fields: list[int]) -> int:
        """A publication, with its authors and title before the other fields."""
        build = self.builder
        opening = [
            build.text(f'<{name} mdate="'), self.date, build.text('" key="'),
            self.path(group, self.last_name), self.short_year, build.text('">\n'),
        ]  # fmt: skip
        people = build.optional(build.loop(self.field("author", self.author), 1, 7), has_authors)
        closing = build.text(f"</{name}>\n")
        return build.element(build.sequence(*opening, people, self.title(), *fields, closing))

    def path(self, group: str, last: int) -> int:
        """The key of something: its group, the short name of the venue, and more."""
        build = self.builder
        return build.sequence(build.text(f"{group}/"), self.venue_key, build.text("/"), last)

    def field(self, name: str, content: int, probability: float = 1.0) -> int:
        """An element on a line of its own."""
        build = self.builder
        element = build.element(
            build.sequence(build.text(f"<{name}>"), content, build.text(f"</{name}>\n"))
        )
        return element if probability == 1 else build.optional(element, probability)

    def title(self) -> int:
        """Some words; in one of fifty titles there is a formula."""
        build = self.builder
        between = build.choice(build.text(" "), build.text(" "), build.text(" "), self.joining)
        words = build.sequence(self.word, build.loop(build.sequence(between, self.word), 1, 4))
        marks = [
            build.element(
                build.sequence(build.text(f" <{tag}>"), self.small, build.text(f"</{tag}>"))
            )
            for tag in ("sub", "sup", "i", "tt")
        ]
        formula = build.optional(build.choice(*marks), 0.02)
        return self.field("title", build.sequence(words, formula, build.text(".")))

    def cites(self) -> int:
        """The list of references that one in three papers has; most of them are not known."""
        build = self.builder
        unknown = build.text("...")
        cite = build.choice(unknown, unknown, unknown, self.path("conf", self.last_name))
        return build.optional(build.loop(self.field("cite", cite), 4, 16), 0.33)

    def ee(self) -> int:
        """The address of the paper."""
        build = self.builder
        doi = build.sequence(
            build.text("https://doi.org/10.1145/"), self.digits, build.text("."), self.digits
        )
        return self.field("ee", doi, 0.25)

    def url(self, group: str) -> int:
        """The page of the venue."""
        build = self.builder
        page = build.sequence(self.path(f"db/{group}", self.small), build.text(".html"))
        return self.field("url", page, 0.2)
