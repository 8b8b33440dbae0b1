"""``DurableSet``: a live set that may be kept in a folder."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tamis.core.arguments import checked_path
from tamis.core.errors import BadSubscriptions, StoreError, SubscriptionId, UsageError
from tamis.core.index.columns import Ids, Texts
from tamis.core.index.live import C, E, LiveSet, S
from tamis.core.index.segments import Segment

if TYPE_CHECKING:
    from tamis.core.index.store import Contents, Store

log = logging.getLogger("tamis")


class DurableSet(LiveSet[E, C, S]):
    """A live set, which :meth:`open` keeps in a folder.

    Each change is written to a journal before it is made. It is durable, and outlives a crash of
    the machine, when :meth:`flush` returns, or the change itself if it was asked to be ``durable``.
    Where a change cannot be written, it is not made. After some MiB of changes, a thread writes
    them as segments, which are read faster, and begins a new journal.

    It is a context manager, which closes the folder.
    """

    KIND: ClassVar[str]
    """What a folder says that it holds."""

    _store: Store | None = None
    _checkpointer: threading.Thread | None = None

    # -- what kinds of subscriptions differ in -----------------------------------------------------

    def _settings(self) -> dict[str, Any]:
        """What the set was made with, as JSON says it."""
        return {}

    @classmethod
    def _arguments(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the class that give some settings."""
        return dict(settings)

    def _written(self, entry: E) -> Any:
        """What stands for a subscription beside its id, as JSON says it."""
        return entry.expression

    def _write_segment(self, path: Path, compiled: C) -> None:
        """Write a segment to a file; by default its ids and expressions."""
        from tamis.core.index.store import write_texts  # noqa: PLC0415 - few sets have a folder

        entries = map(compiled.entry, range(len(compiled.ids)))
        write_texts(path, compiled.ids, Texts.of(entry.expression for entry in entries))

    def _read_segment(self, path: Path) -> C:
        """Read what ``_write_segment`` wrote."""
        from tamis.core.index.store import read_texts  # noqa: PLC0415 - as before

        return self._compiled_again(path, *read_texts(path))

    def _compiled_again(self, path: Path, ids: Ids, texts: Texts) -> C:
        """The ids and expressions that a file has, compiled."""
        return self._compile((), self._reread(zip(ids, texts, strict=True), path))

    # -- the folder --------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, folder: str | os.PathLike[str], *, read_only: bool = False, **settings: Any
    ) -> Self:
        """Open the set that is kept in a folder, or make one where the folder is absent or empty.

        One process may write to a folder; others may open it to be read only.

        Args:
            read_only: see the set as it is now; it cannot be changed.
            settings: arguments of the class. A set that is there knows its own.

        Raises:
            StoreError: the folder is no store of this kind, or damaged, or another process has it.
            UsageError: it was made with other settings.
        """
        from tamis.core.index.store import Store  # noqa: PLC0415 - few sets have a folder

        path = checked_path(folder)
        if "\0" in str(path):
            raise UsageError(f"cannot open {str(path)!r}: a path has no NUL")
        if "subscriptions" in settings:
            raise UsageError("open() takes no subscriptions: add them to the set that it gives")
        path = path.absolute()  # wherever the process works later
        store = Store(path, cls.KIND, lambda: cls(**settings)._settings(), read_only)
        try:
            known = cls._arguments(store.manifest.settings)
            live = cls(**known)
            if settings:
                live._check_settings(path, cls(**known | settings)._settings())
            live._restore(store.read(live._read_segment), path)
        except BaseException:
            store.close()
            raise
        live._store = store
        return live

    def _check_settings(self, path: Path, asked: Mapping[str, Any]) -> None:
        for name, known in self._settings().items():
            if asked[name] != known:
                raise UsageError(
                    f"{path}: it was made with {name}={known!r:.100}, not {asked[name]!r:.100}: "
                    "leave it out, or make another folder"
                )

    def _restore(self, contents: Contents, path: Path) -> None:
        """Have what is in a folder."""
        put: dict[SubscriptionId, Any] = {}
        gone: list[SubscriptionId] = []
        for change in contents.changes:
            gone += [id for id in change["gone"] if put.pop(id, None) is None]
            put.update(change["put"])
        self._segments = contents.segments or self._segments
        self._remove(gone)
        self._new = {entry.id: entry for entry in self._reread(put.items(), path)}

    def _again(self, pairs: list[tuple[SubscriptionId, Any]]) -> Any:
        """What ``_read`` takes, of ids and what was written of each; odd ones were told of."""
        return pairs

    def _reread(self, pairs: Iterable[tuple[SubscriptionId, Any]], path: Path) -> list[E]:
        """Subscriptions that were good when they were written."""
        try:
            new, errors = self._read(self._again(list(pairs)))
            if errors:
                raise BadSubscriptions(tuple(errors))
        except BadSubscriptions as several:
            raise StoreError(str(several), str(path)) from None
        return list(new)

    def flush(self) -> None:
        """Wait until all changes so far are durable; threads that wait share one fsync.

        Raises:
            StoreError: the system cannot say that they are. Changes are refused from now on.
        """
        if self._store is not None:
            self._store.sync()

    def compact(self) -> None:
        """Compile all subscriptions together; of a set with a folder, keep only these there.

        Raises:
            StoreError: the folder cannot be written to; it is as good as before.
        """
        self.compiled()
        self.checkpoint()

    def checkpoint(self) -> None:
        """Write all changes so far as segments, which a later process opens faster.

        Raises:
            StoreError: the folder cannot be written to; it is as good as before.
        """
        if self._store is not None:
            self._checkpoint(self._store)

    def close(self) -> None:
        """Make all changes durable, and let other processes write to the folder.

        The set can still be matched, and no longer be changed.

        Raises:
            StoreError: as for :meth:`flush`.
        """
        if self._store is not None:
            with self._store.checkpointing, self._lock:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- changes, with the lock held ---------------------------------------------------------------

    def _encoded(self, entries: Iterable[E]) -> str:
        if self._store is None:
            return ""
        try:
            return json.dumps([(entry.id, self._written(entry)) for entry in entries])
        except ValueError:
            raise UsageError("an id has too many digits: a folder cannot keep it") from None

    def _write(self, put: str, gone: Sequence[SubscriptionId] = ()) -> None:
        if self._store is not None:
            self._store.journal.append(f'{{"put":{put},"gone":{json.dumps(gone)}}}'.encode())

    def _changed(self) -> None:
        super()._changed()
        if self._store is None or not self._store.is_due:
            return
        if self._checkpointer is None or not self._checkpointer.is_alive():
            name, run = "tamis-checkpoint", self._checkpoint_beside
            self._checkpointer = threading.Thread(target=run, name=name, daemon=True)
            self._checkpointer.start()

    # -- checkpoints -------------------------------------------------------------------------------

    def _checkpoint(self, store: Store) -> None:
        """Write what has no segment in the folder yet, and begin a new journal."""
        with store.checkpointing:
            journal = store.new_journal()
            with self._compiling:
                with self._lock:
                    store.switch(journal)
                    segments = [each for each in self._segments if len(each)]
                    new = list(self._new.values())
                if new:
                    compiled = self._compile((), new)
                    segments.append(Segment(compiled))
                    with self._lock:
                        self._replace((), new, compiled)
                        self._merge_beside()
            store.commit(segments, self._write_segment)

    def _checkpoint_beside(self) -> None:
        store = self._store
        assert store is not None
        try:
            with store.checkpointing:
                if not store.is_closed:
                    self._checkpoint(store)
        except Exception:  # the journal has all changes
            log.exception("%s: its changes cannot be written as segments", store.folder)
