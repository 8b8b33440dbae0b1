"""What paths and conditions mean in a FLWR expression, where they begin with its variable."""

from __future__ import annotations

from collections.abc import Mapping

from tamis.language.analyzer import Analyzer
from tamis.language.grammar import FilterExpression, LocationPath, Variable
from tamis.language.model import Axis, KindTest, Path, Step

_PATHS_MAX = 1 << 16
_paths: dict[Path, Path] = {}


def interned(path: Path) -> Path:
    """One object for paths that are equal, so that what is known of it can be kept by identity."""
    if len(_paths) > _PATHS_MAX:
        _paths.clear()
    return _paths.setdefault(path, path)


class MeaningOfBinding(Analyzer):
    """Gives syntax trees their meaning, relative to the bound node.

    Nothing else evaluates what is not supported: there is no slow lane.

    Args:
        bound: the name of the variable; None for the binding path itself, where there is none yet.
        used: takes the prefixes that the text uses.
    """

    otherwise = None

    def __init__(
        self, text: str, namespaces: Mapping[str, str], used: dict[str, str], bound: str | None
    ) -> None:
        super().__init__(text, namespaces)
        self.used = used
        self.bound = bound

    def variable(self, syntax: Variable) -> Path:
        if syntax.name != self.bound:
            here = f"only ${self.bound} is" if self.bound else "none is here"
            self.syntax_error(f"the variable ${syntax.name} is not bound: {here}", syntax.position)
        if self.inside_predicate:
            self.unsupported(
                "a variable in a predicate is not supported",
                syntax.position,
            )
        return Path(False, ())

    def path(self, syntax: LocationPath) -> Path:
        if self.bound and not self.inside_predicate:
            self.unsupported(
                f"a path that does not begin with ${self.bound} is not supported",
                syntax.position,
                f"write ${self.bound}/… for what is inside of what was bound",
            )
        return super().path(syntax)

    def filtered(self, syntax: FilterExpression) -> Path:
        """``$s[@id]/title`` too: the predicates are those of a step to the node itself."""
        if isinstance(syntax.primary, Variable) and syntax.predicates:
            start = self.variable(syntax.primary)
            with self.in_predicate():
                predicates = tuple(self.predicate(each, Axis.SELF) for each in syntax.predicates)
            here = Step(Axis.SELF, KindTest.NODE, predicates)
            steps = tuple(self.step(step) for step in syntax.steps)
            return interned(Path(False, (*start.steps, here, *steps)))
        return interned(super().filtered(syntax))
