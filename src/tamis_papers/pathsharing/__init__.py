"""The broker paper's strategies; see README.md."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tamis.transform.strategy import Strategy
from tamis_papers.pathsharing.plan import check_planned

if TYPE_CHECKING:
    from tamis.language.filters import Labels
    from tamis.matching.conformance import Schema
    from tamis.transform.shapes import Shape
    from tamis_papers.pathsharing.execute import PathSharingFallback


def _strategy(name: str, sharing: str, is_shared: bool) -> Strategy:
    """One of the strategies.

    Args:
        sharing: how much of path matching is shared, see ``Planner``.
        is_shared: whether plans are shared too.
    """
    how = sharing, is_shared
    return Strategy(name, check_planned, partial(_searcher, how), partial(_explain, how), True)


def _searcher(
    how: tuple[str, bool], labels: Labels, nodes_max: int, schema: Schema | None
) -> PathSharingFallback:
    from tamis_papers.pathsharing.execute import PathSharingFallback  # noqa: PLC0415 - imports kernels

    return PathSharingFallback(labels, *how, schema, nodes_max)


def _explain(how: tuple[str, bool], shape: Shape, labels: Labels, schema: Schema | None) -> str:
    from tamis_papers.pathsharing.claims import Claims  # noqa: PLC0415
    from tamis_papers.pathsharing.explain import explain  # noqa: PLC0415
    from tamis_papers.pathsharing.plan import Planner  # noqa: PLC0415

    sharing, is_shared = how
    claims = Claims(labels, None if schema is None else schema.expanded)
    return explain(Planner(sharing, claims, is_shared), shape, labels)


PATH_SHARING_F = _strategy("path-sharing-f", "f", False)
PATH_SHARING_FW = _strategy("path-sharing-fw", "fw", False)
PATH_SHARING_FWR = _strategy("path-sharing-fwr", "fwr", False)
PLAN_SHARING = _strategy("plan-sharing", "fwr", True)
