"""Documents that end where memory ends, and tokens at every place of the blocks that are read.

``python -m tests.documents.borders lengths`` (or ``places``) compares both paths on them. A parser
that reads one byte too far dies of it, so tests run this as a process of its own.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product

from tamis.documents import parser
from tamis.documents.source import Source
from tests.documents.both_paths import PROJECTIONS, BothPaths, Counts

PAGE = mmap.PAGESIZE
_SLOTS = 500
_LENGTH_MAX = 200
_PROT_NONE = 0


class Guarded:
    """Pages for one document each, with an unreadable page before and after each."""

    def __init__(self, slots: int = _SLOTS) -> None:
        self.memory = mmap.mmap(-1, (2 * slots + 1) * PAGE)
        self.view = memoryview(self.memory)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        libc = ctypes.CDLL(None, use_errno=True)
        for page in range(0, 2 * slots + 1, 2):
            start = ctypes.c_void_p(self.address + page * PAGE)
            if libc.mprotect(start, ctypes.c_size_t(PAGE), _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")

    def place(self, slot: int, data: bytes, at_start: bool = False) -> memoryview:
        """Put a document right before an unreadable page, or right after one."""
        page = (2 * slot + 1) * PAGE
        first = page if at_start else page + PAGE - len(data)
        self.view[first : first + len(data)] = data
        return self.view[first : first + len(data)]


def compare(
    documents: Iterable[bytes], projections: Iterable[str], at_start: bool = False
) -> Counts:
    """Compare both paths on documents that end (or start) at the border of a page."""
    guarded = Guarded()
    counts = Counts()
    paths = [
        BothPaths(PROJECTIONS[name], fast_first=bool(n % 2)) for n, name in enumerate(projections)
    ]
    rest = iter(documents)
    while some := list(islice(rest, _SLOTS)):
        sources = [Source(guarded.place(n, data, at_start)) for n, data in enumerate(some)]
        for both in paths:
            counts = counts.plus(both.compare(sources))
    return counts


# -- every length ----------------------------------------------------------------------------------

# What is between | is repeated, or what % stands for is a number that goes up.
SHAPES = [
    "|x|<a/>", "<a/>|x|", "| |<a/>", "<a/>| |", "<a/>|\n|", "|\r\n|<a/>",
    "<a>|x|</a>", "<a>|é|</a>", "<a>|€|</a>", "<a>|😀|</a>", "<a>| |</a>", "<a>|\n|</a>",
    "<a>|\r\n|</a>", "<a>|\r|</a>", "<a>|]|</a>", "<a>|&amp;|</a>", "<a>|&#65;|</a>", "<a>|>|</a>",
    "<a>&#|0|65;</a>", "<a>|x|", "<a>|x|<", "<a>|x|</", "<a>|x|</a", "<a>|x|&", "<a>|x|&amp",
    "<|n|/>", "<|n|></|n|>", "<|é|></|é|>", "<|n|>", "<|n|", "<a><|n|/></a>", "</|n|>",
    "<a |n|='1'/>", "<a |é|='1'/>", "<a |n|=''", "<a |n|", "<a xmlns:|p|='u' |p|:x='1'/>",
    "<|p|:a xmlns:|p|='u'></|p|:a>", "<a xmlns='|u|'><b/></a>", "<p:a xmlns:p='|u|' p:x='1'/>",
    "<a x='|v|'/>", '<a x="|v|"/>', "<a x='|é|'/>", "<a x='| |'/>", "<a x='|\n|'/>",
    "<a x='|\r\n|'/>", "<a x='|&lt;|'/>", "<a x='|>|'/>", "<a x='|v|", "<a x='|v|'",
    "<a| |/>", "<a| |></a| |>", "<a |\n|x='1'/>", "<a x| |='1'/>", "<a x=| |'1'/>", "<a x='1'| |/>",
    "<a| |", "<a></a| |", "<a x='1'| |y='2'/>", "<a|\r\n|/>",
    "<a| x%='1'|/>", "<a| x%='1'|>", "<a| xmlns:p%='u'|/>", "<a| xmlns:p%='u%' p%:x='1'|/>",
    "<a>|<b/>|</a>", "<a>|<b>x</b>|</a>", "<a>|<b%/>|</a>", "|<a>||</a>|", "|<a>|", "<a>|</a>|",
    "<a><!--|c|--></a>", "<a><!--|é|--></a>", "<a><!--|\r\n|--></a>", "<a><!--|- |--></a>",
    "<a><!--|c|--", "<a><!--|c|-", "<a><!--|c|", "<!--|c|--><a/>", "<a/><!--|c|-->",
    "<a/><!--|c|", "<a>|<!---->|</a>", "<a>|x<!---->|</a>", "<!--|-|--><a/>",
    "<a><![CDATA[|x|]]></a>", "<a><![CDATA[|]|]]></a>", "<a><![CDATA[|\r\n|]]></a>",
    "<a><![CDATA[|]]|", "<a><![CDATA[|x|]]", "<a><![CDATA[|é|]]></a>", "<a>|<![CDATA[]]>|</a>",
    "<a>|<![CDATA[x]]>|</a>", "<a><?|p|?></a>", "<a><?p |d|?></a>", "<a><?p |?|?></a>",
    "<a><?p| |?></a>", "<a><?p| |d?></a>", "<a><?p |d|?", "<a><?p |d|", "<a><?|p|",
    "<?p |d|?><a/>", "<a/><?p |d|?>", "<a>|<?p?>|</a>", "<?xml version='1.0'| |?><a/>",
    "<?xml| |version='1.0'?><a/>",
    "<?xml version='1.0' encoding| |='UTF-8'?><a/>", "<?xml version='1.0'?>|\n|<a/>",
    "<!DOCTYPE |n|><a/>", "<!DOCTYPE a| |><a/>", "<!DOCTYPE a SYSTEM '|s|'><a/>",
    "<!DOCTYPE a PUBLIC '|s|' 'x'><a/>", "<!DOCTYPE a SYSTEM 'x'>|<!---->|<a/>",
    "<!DOCTYPE a SYSTEM 'x'><a>|&u;|</a>", "<!DOCTYPE a SYSTEM 'x'><a>&|u|;</a>",
    "<!DOCTYPE a SYSTEM 'x'><a x='|&u;|'/>", "<!DOCTYPE a SYSTEM '|s|", "<!DOCTYPE a SYSTEM 'x'| |",
]  # fmt: skip


def shaped(shape: str, length: int) -> bytes:
    """A shape with its repeated parts repeated so often."""
    parts = shape.split("|")
    for index in range(1, len(parts), 2):
        part = parts[index]
        numbered = "".join(part.replace("%", str(n)) for n in range(length)) if "%" in part else ""
        parts[index] = numbered or part * length
    return "".join(parts).encode()


def lengths() -> Iterator[bytes]:
    """Every shape with every length."""
    for shape, length in product(SHAPES, range(_LENGTH_MAX + 1)):
        data = shaped(shape, length)
        if len(data) <= PAGE:
            yield data


def beginnings() -> Iterator[bytes]:
    """Every beginning of documents with a bit of everything."""
    for data in (
        b"<?xml version='1.0' encoding='UTF-8' standalone='no'?><!DOCTYPE a PUBLIC 'p' \"s\" ><a/>",
        b"<!--c--><?p d?>\r\n<a x='1' xmlns:p=\"u\"\t><p:b p:y='&#x41;&lt;' />"
        b"<![CDATA[]]]]>]]&gt;</a\n>",
        "<é à='ü'>€😀&amp;&#128512;<!-- — --><?π ñ?></é><!--e--> ".encode(),
    ):
        for end in range(len(data)):
            yield data[:end]
            yield b"<a>" + b" " * 59 + data[:end]


# -- every place -----------------------------------------------------------------------------------

TOKENS = [
    *b"< > / & &amp; &#65; &#x110000; &u; ' \" = ! ? - -- ] ]] ]]> --> ?> /> </ </a>".split(),
    *b"<b/> <!-- <? <![CDATA[ <?xml : a:b %".split(),
    b" ", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\x01", b"\x0c", b"\x1f", b"\x7f",
    b"\xc2\x80", b"\xc3\xa9", b"\xe2\x82\xac", b"\xf0\x9f\x98\x80", b"\xef\xbb\xbf",
    b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xed\xa0\x80", b"\xc0\x80", b"\xe0\x80\x80",
    b"\xf4\x90\x80\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"\xff",
]  # fmt: skip
# What comes before the token, what fills (before it), what comes after it.
PLACES = {
    "text": (b"<a>", b"x", b"</a>"),
    "spaces": (b"<a>", b" ", b"y</a>"),
    "content": (b"<a>", b"<b/>", b"</a>"),
    "value": (b"<a x='", b"v", b"' y=''/>"),
    "value in double quotes": (b'<a x="', b"v", b'">t</a>'),
    "namespace": (b"<p:a xmlns:p='", b"u", b"'/>"),
    "comment": (b"<a><!--", b"c", b"-->t</a>"),
    "CDATA": (b"<a><![CDATA[", b"x", b"]]>t</a>"),
    "PI": (b"<a><?p ", b"d", b"?>t</a>"),
    "target": (b"<a><?p", b"p", b"?>t</a>"),
    "name": (b"<a><b", b"n", b"/></a>"),
    "name of an attribute": (b"<a b", b"n", b"='1'/>"),
    "tag": (b"<a ", b" ", b"x='1'/>"),
    "tag's end": (b"<a x='1'", b"\n", b"></a>"),
    "end tag": (b"<a></a", b" ", b">"),
    "prolog": (b"", b" ", b"<a/>"),
    "epilog": (b"<a/>", b" ", b"<!---->"),
    "DOCTYPE": (b"<!DOCTYPE a SYSTEM '", b"s", b"'><a/>"),
}


def placed(place: str) -> Iterator[bytes]:
    """Every token at every position of a place."""
    before, fill, after = PLACES[place]
    for length in range(_LENGTH_MAX + 1):
        for token in TOKENS:
            yield before + fill * length + token + after


def compare_lengths() -> Counts:
    counts = compare(lengths(), ("all", "nothing"))
    for at_start in (False, True):
        counts = counts.plus(compare(beginnings(), PROJECTIONS, at_start))
    return counts.plus(compare(lengths(), ("all",), at_start=True))


def compare_places() -> Counts:
    counts = Counts()
    for place in PLACES:
        counts = counts.plus(compare(placed(place), ("all",)))
    return counts


def read_beyond() -> str:
    """The canary: one byte beyond a document, which must end the process."""
    document = Guarded().place(3, b"<a/>")
    start = ctypes.addressof(ctypes.c_char.from_buffer(document))
    assert ctypes.string_at(start, 4) == b"<a/>"
    print("alive", flush=True)
    ctypes.string_at(start + 4, 1)
    return "still alive"


def in_place(part: Callable[[], Counts]) -> Callable[[], Counts]:
    """A part, each document read where it is, however small, so that nothing stands behind it."""

    def compared() -> Counts:
        parser.JOINED_BYTES = -1
        return part()

    return compared


PARTS: dict[str, Callable[[], object]] = {
    "lengths": compare_lengths,
    "places": compare_places,
    "lengths-in-place": in_place(compare_lengths),
    "places-in-place": in_place(compare_places),
    "beyond": read_beyond,
}


if __name__ == "__main__":
    logging.getLogger("tamis").setLevel(logging.ERROR)  # entities that are left out are many
    print(PARTS[sys.argv[1]]())
