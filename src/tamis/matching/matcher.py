"""Compiled subscriptions: documents in, ids of the matching subscriptions out.

``compile_subscriptions`` and ``load_matcher`` make them; start reading at ``CompiledMatcher``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.core.arguments import checked_limits, checked_path
from tamis.core.errors import OtherVersion, UsageError
from tamis.core.index.columns import Ids
from tamis.core.index.matches import Subscribers
from tamis.core.index.segments import Segment
from tamis.core.limits import Limits
from tamis.documents.vocabulary import Projection
from tamis.language.lower import lowered
from tamis.language.model import Query
from tamis.language.subscriptions import (
    Subscription,
    SubscriptionItems,
    Subscriptions,
    as_subscriptions,
)
from tamis.language.xpath import Unsupported
from tamis.matching.batches import BatchMatcher, Programs
from tamis.matching.planner import compile_assignment, plan, with_switch
from tamis.matching.projection import expression_reading, projection_of
from tamis.matching.snapshot import Snapshot

if TYPE_CHECKING:
    from tamis.language.xpath import Operand
    from tamis.matching.conformance import Schema
    from tamis.matching.explain import NamespaceMismatch
    from tamis.matching.saved import LoadedProgram
    from tamis.schema.graph import SchemaGraph


class CompiledMatcher(Snapshot):
    """Compiled subscriptions: immutable, safe to share between threads, picklable.

    Made by :func:`tamis.compile` or :func:`tamis.load`. A pickle holds the subscriptions, which are
    compiled again where it is loaded; or, of a matcher that was loaded, the path of its file.
    """

    def __init__(
        self,
        subscriptions: Subscriptions,
        engine: str,
        limits: Limits,
        loaded: LoadedProgram | None = None,
        schema: Schema | None = None,
        projection: Projection = Projection(),  # noqa: B008 - it is immutable
    ) -> None:
        self.subscriptions = subscriptions
        self.schema = schema
        self.named_engine = engine  # or "auto"
        self.loaded_from = loaded  # the file, if it was loaded
        self._violations = None if schema is None else schema.violations()
        if loaded is None:
            queries = subscriptions.queries
            subscribers = Subscribers.of(subscriptions.query_numbers, len(queries))
            assignments = [
                compile_assignment(assignment, subscriptions, schema, self._violations)
                for assignment in plan(queries, engine)
            ]
        else:
            subscribers, assignments = loaded.compiled.subscribers, loaded.compiled.assignments
        if engine == "auto" and schema is None:
            assignments = [(with_switch(*each), each[1]) for each in assignments]
        self.programs = Programs(subscriptions, subscribers, assignments)
        super().__init__(BatchMatcher([Segment(self.programs)], limits, projection))

    @property
    def ids(self) -> Ids:
        """The ids of the subscriptions, by the numbers that matches have."""
        return self.subscriptions.ids

    def entry(self, number: int) -> Subscription:
        """The subscription of a number."""
        return self.subscriptions.subscription(number)

    def with_limits(self, limits: Limits) -> CompiledMatcher:
        """The same, with other bounds on each document; it is not compiled again."""
        other = CompiledMatcher.__new__(CompiledMatcher)  # a copy would be compiled or loaded
        other.__dict__.update(self.__dict__, limits=limits)
        other._batches = self._batches.with_limits(limits)
        return other

    @property
    def engine(self) -> str:
        """The name of the chosen engine, or the names of several with "and" between."""
        return " and ".join(assignment.engine.name for assignment, _ in self._batches.assignments)

    @property
    def schema_violations(self) -> int:
        """How many documents violated the DTD so far; 0 where it is trusted or not used."""
        return 0 if self._violations is None else self._violations.count

    @property
    def first_violation(self) -> str:
        """How the first document violated the DTD: an element, and what is around it; or ""."""
        return "" if self._violations is None else self._violations.first

    def namespace_mismatch(self) -> NamespaceMismatch | None:
        """An element name that subscriptions and documents have, in different namespaces.

        The documents are those that were matched so far; of very many names some are forgotten.
        """
        from tamis.matching.explain import find_namespace_mismatch  # noqa: PLC0415 - few ask

        return find_namespace_mismatch(self.subscriptions, self._batches.names())

    def memory_usage(self) -> dict[str, int]:
        """Bytes, as far as they are known: of the "program", and of the "warm" caches.

        The caches of threads that are matching now are not counted.
        """
        programs = [program for _, program in self._batches.assignments]
        return {
            "program": sum(program.memory_usage() for program in programs),
            "warm": self._batches.memory_usage(),
        }

    def save(self, path: str | os.PathLike[str], *, warm: bool = False) -> None:
        """Save it to a file, for :func:`tamis.load`; one that is there is replaced.

        Args:
            warm: also save the cache that the documents so far have filled, in a file beside it
                whose name ends in ``.cache``: the largest cache of all threads that are not
                matching now. Without ``warm``, no such file is left there.

        Raises:
            UsageError: a file cannot be written, or its engine pruned with a DTD.

        >>> import tamis
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     tamis.compile({"x": "//a"}).save(f"{folder}/x.tamis")
        ...     list(tamis.load(f"{folder}/x.tamis").match("<a/>"))
        ['x']
        """
        from tamis.matching import saved  # noqa: PLC0415 - imports kernels

        assignments = self._batches.assignments
        pruning = " and ".join(
            part.engine.name for part, _ in assignments if part.engine.heuristics
        )
        if self.schema is not None and pruning:
            raise UsageError(
                f"what {pruning} pruned with a DTD cannot be saved: compile without the DTD"
            )
        asked = self.subscriptions, self.named_engine, self.limits
        compiled = saved.Compiled(*asked, assignments, self.programs.subscribers)
        saved.save(checked_path(path), compiled, self._batches.searchers() if warm else [])

    def __reduce__(self) -> tuple[Any, ...]:
        if (loaded := self.loaded_from) is not None:
            return load_again, (loaded.path, loaded.identity, self.limits)
        arguments = self.subscriptions, self.named_engine, self.limits, None, self.schema
        return CompiledMatcher, arguments

    def __repr__(self) -> str:
        return f"<CompiledMatcher: {len(self):,} subscriptions, engine {self.engine}>"


def compile_subscriptions(  # noqa: PLR0913 - what may be asked
    subscriptions: Subscriptions | SubscriptionItems,
    *,
    engine: str = "auto",
    dtd: str | os.PathLike[str] | SchemaGraph | None = None,
    root: str | None = None,
    dtd_trust: bool = False,
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    unsupported: Unsupported = "refuse",
    limits: Limits | None = None,
) -> CompiledMatcher:
    """Compile subscriptions; exported as :func:`tamis.compile`.

    Args:
        subscriptions: a :class:`Subscriptions`, or what makes one: id → expression, pairs, or the
            :class:`pathlib.Path` of a file with these.
        engine: ``"auto"``, or the name of one.
        dtd: a file with the DTD of the documents (``*.dtd``), or a document that has a DOCTYPE.
            Subscriptions are pruned with it, if the engine gains by that. It never changes an
            answer: documents that violate it are answered without it.
        root: the element that documents begin with; by default the one in the DOCTYPE, or those
            that no other element holds.
        dtd_trust: documents are valid, and are not checked. Answers about others may be wrong.
        namespaces, default_namespace, unsupported: as for :class:`Subscriptions`, if one is made.
        limits: bounds on each document and expression; by default those of the subscriptions.

    Raises:
        BadSubscriptions: some expressions cannot be used.
        EngineRefused: the named engine does not exist or cannot run them.
        MissingExtra: lxml has to evaluate some and is not installed.
        SchemaError: the DTD cannot be read.
        UsageError: ``namespaces``, ``default_namespace`` or ``unsupported`` is given for
            subscriptions that are parsed; or the DTD does not declare the root.
    """
    schema = None
    if dtd is not None or root is not None or dtd_trust:
        from tamis.matching.conformance import read_schema  # noqa: PLC0415 - few have a DTD

        schema = read_schema(dtd, root, dtd_trust)
    parsed = as_subscriptions(
        subscriptions,
        namespaces=namespaces,
        default_namespace=default_namespace,
        unsupported=unsupported,
        limits=limits,
    )
    own_limits = parsed.limits if limits is None else checked_limits(limits)
    return CompiledMatcher(parsed, engine, own_limits, None, schema)


def value_matcher(operand: Operand) -> CompiledMatcher:
    """A matcher without subscriptions, whose matches evaluate an expression that selects no nodes.

    >>> from tamis.language.xpath import parse_value
    >>> operand = parse_value("count(//a)")
    >>> match = value_matcher(operand).match("<a><a/></a>", nodes="all")
    >>> match.document_nodes.value(operand)
    2.0
    """
    none = Subscriptions({})
    projection = projection_of(lowered([Query(expression_reading(operand))]))
    return CompiledMatcher(none, "reference", none.limits, projection=projection)


def load_matcher(path: str | os.PathLike[str]) -> CompiledMatcher:
    """Load what :meth:`CompiledMatcher.save` wrote; exported as :func:`tamis.load`.

    The file is mapped into memory, so a million subscriptions are there at once, and processes
    share them. It must not change meanwhile; ``save`` puts another one in its place. A warm cache
    beside it is loaded too.

    Raises:
        ProgramError: there is no such file, or it is damaged, or of another version of Tamis.
        MissingExtra: lxml has to evaluate some subscriptions and is not installed.
    """
    from tamis.matching import saved  # noqa: PLC0415 - imports kernels

    loaded = saved.load(checked_path(path).absolute())
    compiled = loaded.compiled
    return CompiledMatcher(compiled.subscriptions, compiled.engine, compiled.limits, loaded)


def load_again(path: Path, identity: str, limits: Limits) -> CompiledMatcher:
    """Load a matcher whose pickle names a file."""
    matcher = load_matcher(path)
    if matcher.loaded_from is None or matcher.loaded_from.identity != identity:
        raise OtherVersion("it was replaced since the matcher was pickled", str(path))
    return matcher.with_limits(limits)
