"""The documents that a command is given, and the progress through them."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar

from click.exceptions import Exit

from tamis.cli.console import Status, progress, say, warn
from tamis.cli.options import Option
from tamis.core.errors import DocumentError, UnreadableDocument, UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.threads import Flush, usable_cores
from tamis.documents import files

if TYPE_CHECKING:
    from tamis.cli.arguments import Namespaces
    from tamis.documents.source import Document
    from tamis.matching.match import Match
    from tamis.matching.matcher import CompiledMatcher

DOCUMENT_HELP = (
    "A file, a folder or an archive (zip, tar, tar.gz, …) with *.xml and *.xml.gz files, a quoted "
    "pattern such as 'in/**/*.xml', or - for standard input. Tamis decompresses gzip."
)


class DocumentChoice(NamedTuple):
    """How documents are found.

    Options:
        recursive: Also read subfolders, at any depth.
        globs: Read files in folders and members of archives whose name matches, such as '*.rss'.
            Repeatable.
        concatenated: Each input contains several documents, one after another. Results have the
            "number" of the document, from 0. =lines: one document per line. =nul: a NUL byte
            between documents.
    """

    recursive: bool = False
    globs: Annotated[
        list[str] | None, Option("--glob", metavar="PATTERN", show_default="*.xml and *.xml.gz")
    ] = None
    concatenated: Annotated[
        Literal["xml", "lines", "nul"] | None, Option(metavar="[=lines|nul]")
    ] = None

    def names(self) -> files.NameFilter:
        """Which files of folders are read."""
        return files.NameFilter(tuple(self.globs or ()), self.recursive)


class Records(NamedTuple):
    """Which elements of documents are records.

    Options:
        tag: Match each outermost element with this tag as a separate document. Write TAG as the
            documents do, such as page or w:p; or with its namespace, {uri}page, or a prefix of
            --namespaces or --ns. Documents may have any size, because they are streamed.
        on_bad: Where a document with records is not well-formed, stop, or resume at the next start
            tag of a record. The error tells the bytes that were passed over.
    """

    tag: Annotated[str | None, Option("--record", metavar="TAG")] = None
    on_bad: Annotated[Literal["stop", "resume"], Option("--on-bad-record")] = "stop"

    def wanted(self, namespaces: Namespaces) -> Wanted:
        """What the library is asked for; prefixes that are declared stand for their namespaces."""
        tag = self.tag
        if tag is None:
            if self.on_bad != "stop":
                raise UsageError("--on-bad-record is for --record TAG")
            return {"record": None, "on_bad_record": "stop"}
        prefix, colon, name = tag.rpartition(":")
        if colon and "}" not in tag and (uri := namespaces.declared().get(prefix)):
            tag = f"{{{uri}}}{name}"
        return {"record": tag, "on_bad_record": self.on_bad}

    def root(self, wanted: Wanted) -> str | None:
        """What a DTD calls the element; it knows no namespaces."""
        is_expanded = (wanted["record"] or "").startswith("{")
        return None if is_expanded else self.tag


class Wanted(TypedDict):
    """Arguments of ``match_records`` and of Spark's functions."""

    record: str | None
    on_bad_record: Literal["stop", "resume"]


class Target(NamedTuple):
    """A document that was asked for: where to read it, or why it cannot even be tried.

    ``name`` is what the results call it; ``number`` counts documents that stand one after the
    other, from 0.
    """

    name: str
    document: Document | DocumentError
    number: int | None = None

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.name if self.number is None else f"{self.name}[{self.number}]"


Result = TypeVar("Result")


class Documents:
    """The documents that DOCUMENT arguments stand for, which are found before any is read.

    With ``as_streams`` they may be of any size, and each is done with before the next is taken.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        choice: DocumentChoice = DocumentChoice(),
        limits: Limits = DEFAULT_LIMITS,
        as_streams: bool = False,
    ) -> None:
        if arguments.count("-") > 1:
            raise UsageError("standard input can be read only once: give - once")
        self.limits = limits
        self._by = choice.concatenated
        self._names = choice.names()
        self._as_streams = as_streams
        self._count_bytes: Callable[[int], object] | None = None
        self._targets = [found for one in arguments for found in self._found(one)]
        self.is_one = [target.name for target in self._targets] == arguments and len(arguments) == 1

    def __iter__(self) -> Iterator[Target]:
        """The documents, one at a time; a compressed tar is read as far as they are taken."""
        return (item for item in self._items() if isinstance(item, Target))

    def answered(
        self, match: Callable[[Iterable[Document | DocumentError | Flush]], Iterator[Result]]
    ) -> Iterator[tuple[Target, Result]]:
        """Each document with what a function says of it, in order, which may take some ahead."""
        taken: deque[Target] = deque()

        def given() -> Iterator[Document | DocumentError | Flush]:
            for item in self._items():
                if isinstance(item, Target):
                    taken.append(item)
                    yield item.document
                else:
                    yield item

        for result in match(given()):
            yield taken.popleft(), result

    def matched(
        self,
        matcher: CompiledMatcher,
        wanted: Wanted,
        advance: Callable[[], object],
        threads: int | None,
        **options: Any,
    ) -> Iterator[tuple[Target, Match]]:
        """Each document, or each record of each document, with its match.

        Documents without any records are told of; if none has any, the command ends. ``advance`` is
        what :meth:`shown` yields; ``options`` are those of :meth:`CompiledMatcher.match_many`.
        """
        options["threads"] = threads or usable_cores()
        record = wanted["record"]
        if record is None:
            for found in self.answered(partial(matcher.match_many, **options)):
                yield found
                advance()
            return
        have_any: list[bool] = []
        for target in self:
            have_any.append(False)
            on_bad = wanted["on_bad_record"]
            for match in matcher.match_records(
                target.document, record, on_bad_record=on_bad, **options
            ):
                have_any[-1] = True
                yield target, match
            if not have_any[-1]:
                warn(f"{target.label} has no element {record}: it has no records")
        if have_any and not any(have_any):
            say(
                f"no document has an element {record}: give the tag as documents write it, "
                "page or w:p; or with its namespace, {uri}page"
            )
            raise Exit(Status.DOCUMENTS)

    @contextmanager
    def shown(self, output_is_terminal: bool) -> Iterator[Callable[[], object]]:
        """Show the progress; yields a function to call after each document."""
        if self._as_streams or self._by or any(map(_has_stream, self._targets)):
            size = sum(_size(target.document) for target in self._targets)
            with progress(size or None, output_is_terminal, "bytes") as advance:
                self._count_bytes = advance
                yield lambda: None
        else:
            with progress(len(self._targets), output_is_terminal) as advance:
                yield advance

    # -- what arguments stand for ------------------------------------------------------------------

    def _found(self, argument: str) -> Iterator[Target]:
        if argument == "-":
            yield find_document(argument)
            return
        paths = files.expanded(argument)
        if not paths:
            raise UsageError(f"{argument}: {files.NO_SUCH_NAME}")
        for path in paths:
            if not os.path.isdir(path):
                yield from self._of_file(path)
                continue
            listing = files.list_folder(path, self._names)
            self._warn_of_left_out(path, listing.left_out)
            for file in listing.files:
                if file.problem is None:
                    yield from self._of_file(file.path)
                else:
                    yield Target(file.path, UnreadableDocument(file.problem))

    def _of_file(self, path: str) -> list[Target]:
        is_tar = files.is_tar(path) and not files.is_packed_tar(path)
        if not (is_tar or files.is_zip(path)):
            return [_file(path)]
        left_out: list[str] = []
        try:
            with open(path, "rb") as file:
                members = list(files.archive_members(file, path, self._names, left_out))
        except Exception as error:  # whatever damaged archives make their readers raise
            kind = "tar" if is_tar else "zip"
            problem = f"cannot read the {kind} archive: {files.reason(error)}"
            return [Target(path, UnreadableDocument(problem))]
        if not members:
            problem = f"{'an' if is_tar else 'a zip'} archive without {self._names.wanted}"
            return [Target(path, UnreadableDocument(problem))]
        self._warn_of_left_out(path, left_out)
        return [Target(f"{path}/{member.name}", member) for member in members]

    def _warn_of_left_out(self, place: str, left_out: Sequence[str]) -> None:
        if left_out:
            warn(f"{self._names.left_out(place, left_out)}; --glob takes them")

    # -- reading -----------------------------------------------------------------------------------

    def _items(self) -> Iterator[Target | Flush]:
        for target in self._targets:
            if _has_stream(target):
                yield from self._members(target)
            elif self._by is not None:
                yield from self._divided(target)
            elif self._as_streams:
                with _opened(target.document, self._count_bytes) as document:
                    yield target._replace(document=document)
            else:
                yield target

    def _divided(self, target: Target) -> Iterator[Target | Flush]:
        """The documents that stand in one, one after the other."""
        from tamis.documents.concatenated import split  # noqa: PLC0415 - keeps --help fast

        if isinstance(target.document, DocumentError):
            yield target
            return
        number = 0
        with _opened(target.document, self._count_bytes) as document:
            if isinstance(document, DocumentError):
                yield target._replace(document=document)
                return
            for found in split(document, self._by or "xml", self.limits).items():
                if isinstance(found, Flush):
                    yield found
                else:
                    yield Target(target.name, found, number)
                    number += 1
        if not number:
            warn(f"{target.name} has no documents")

    def _members(self, target: Target) -> Iterator[Target | Flush]:
        left_out: list[str] = []
        with _opened(target.document, self._count_bytes, must_open=True) as file:
            if isinstance(file, DocumentError):
                yield target._replace(document=file)
                return
            for name, found in files.tar_documents(file, self._names, left_out):  # type: ignore[arg-type]
                member = Target(f"{target.name}/{name}" if name else target.name, found)
                if isinstance(found, DocumentError) or self._as_streams:
                    yield member
                elif self._by is not None:
                    yield from self._divided(member)
                else:  # of one that is too large, a little more than is allowed
                    yield member._replace(document=self._data(found))
        self._warn_of_left_out(target.name, left_out)

    def _data(self, file: Any) -> bytes | DocumentError:
        try:
            data: bytes = file.read(self.limits.document_bytes + 1)
        except Exception as error:  # whatever damaged archives make tarfile raise
            return UnreadableDocument(f"cannot read it from the archive: {files.reason(error)}")
        return data


def _file(path: str) -> Target:
    if "://" in path and not os.path.lexists(path):
        problem = f"cannot read {path}: nothing is fetched: pipe it in, and give -"
        return Target(path, UnreadableDocument(problem))
    return Target(path, Path(path))


def find_document(argument: str) -> Target:
    """The one document that an argument stands for."""
    if argument != "-":
        return _file(argument)
    if sys.stdin is None:  # as it is after <&-
        return Target(argument, UnreadableDocument("standard input is closed"))
    return Target(argument, sys.stdin.buffer)


def _size(document: object) -> int:
    try:
        return os.path.getsize(document) if isinstance(document, Path) else 0
    except (OSError, ValueError):
        return 0


def _has_stream(target: Target) -> bool:
    path = str(target.document) if isinstance(target.document, Path) else ""
    return files.is_tar(path) and files.is_packed_tar(path)


@contextmanager
def _opened(
    document: Document | DocumentError,
    count_bytes: Callable[[int], object] | None,
    must_open: bool = False,
) -> Iterator[Document | DocumentError]:
    """A document, opened if ``must_open``, or where the bytes that are read are counted."""
    if count_bytes and hasattr(document, "read"):
        yield _Counted(document, count_bytes)  # type: ignore[misc]
        return
    if not isinstance(document, Path) or not (count_bytes or must_open):
        yield document
        return
    try:
        file = document.open("rb")
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        yield UnreadableDocument(f"cannot read {document}: {problem}")
        return
    with file:
        yield file if count_bytes is None else _Counted(file, count_bytes)  # type: ignore[misc]


class _Counted:
    """An open file that counts the bytes read from it."""

    def __init__(self, file: Any, count_bytes: Callable[[int], object]) -> None:
        self._file = file
        self._count_bytes = count_bytes
        self.name = getattr(file, "name", "")
        self.fileno = file.fileno

    def read(self, size: int = -1) -> bytes:
        return self._counted(self._file.read(size))

    def read1(self, size: int = -1) -> bytes:
        return self._counted(self._file.read1(size))

    def _counted(self, data: bytes) -> bytes:
        self._count_bytes(len(data))
        return data
