"""Subscriptions → compiled matchers: from expressions, or from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.core.arguments import checked_limits, checked_path
from tamis.core.errors import OtherVersion
from tamis.core.limits import Limits
from tamis.language.subscriptions import SubscriptionItems, Subscriptions, as_subscriptions
from tamis.language.xpath import Unsupported
from tamis.matching.matcher import CompiledMatcher
from tamis.matching.projection import projection_of_operand

if TYPE_CHECKING:
    from tamis.language.xpath import Operand
    from tamis.schema.graph import SchemaGraph


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
        engine: ``"auto"``, or an engine to use or be refused.
        dtd: a file with the DTD of the documents (``*.dtd``), or a document that has a DOCTYPE.
            Subscriptions are pruned with it, as far as the engine gains by that. It never changes
            an answer: documents that violate it are answered without it.
        root: the element that documents begin with; by default the one in the DOCTYPE, or those
            that no other element holds.
        dtd_trust: documents are valid, and need not be held against the DTD. Answers about invalid
            documents may then be wrong.
        namespaces, default_namespace, unsupported: as for :class:`Subscriptions`, where one has to
            be made.
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
    projection = projection_of_operand(operand)
    return CompiledMatcher(none, "reference", none.limits, projection=projection)


def load_matcher(path: str | os.PathLike[str]) -> CompiledMatcher:
    """Load what :meth:`CompiledMatcher.save` wrote; exported as :func:`tamis.load`.

    The file is mapped into memory, so a million subscriptions are there at once, and processes
    share them. It must not be written into meanwhile; ``save`` puts another one in its place. A
    warm cache beside it is loaded too.

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
    assert matcher.loaded_from is not None
    if matcher.loaded_from.identity != identity:
        raise OtherVersion("it was replaced since the matcher was pickled", str(path))
    return matcher.with_limits(limits)
