"""Linear filters pruned with a DTD: ``*`` and ``//`` become the elements that may stand there.

A filter is a path of child and descendant steps. In documents whose elements stand in each other as
the DTD's graph has it, it is true where one of its *pruned* filters is, each of which has as few
``*`` and ``//`` as the heuristics allow (Silvasti, Sippu and Soisalon-Soininen: Schema-Conscious
Filtering of XML Documents, EDBT 2009; section 2, Algorithms 1 to 3).

Where this departs from the paper:

* Its rewriting collapses ``/*//*//`` into ``/*//``, which is true of more documents: one that is
  less deep. Here the ``//`` that follow each other become one, and each ``*`` stays.
* What follows a step is pruned once for each element that the step may be, and remembered.
* A filter that would become too many is pruned by the rules that make few, or left as it is.
* Whether ``*`` stands for only children of its parent, or for leaves, is asked of each element.
* ``//`` between elements that are not above each other makes a filter false, at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from tamis.language.filters import WILDCARD, Codes, Labels, is_open

if TYPE_CHECKING:
    from tamis.schema.graph import ExpandedGraph, SchemaGraph


class Heuristics(NamedTuple):
    """Which operators are eliminated, where that is possible.

    Attributes:
        wildcards: "all" ``*``; or those whose element is the "only-parent" of what they stand for,
            or stands above leaves alone; or "none".
        descendants: "all" ``//`` between elements with few enough paths; or those with a "single"
            path; or "none". With "only-parent" and "single" filters become few. (The paper says:
            polynomially many; but of ``/a0/*/a1/*/a2…`` on its own ladder of elements, where each
            is the only parent of two, come two to the number of rungs: what bounds that are the
            next three.)
        leading: whether a ``//`` in front is eliminated too.
        substitutes_max: how many steps all paths between two elements may have together.
        filters_max, steps_max: what one filter may become: so many filters, of so many steps in
            all. One that would become more is pruned by "only-parent" and "single", or else left
            as it is.
        all_steps_max: the steps of all filters that one ``Pruner`` has made. Beyond, it prunes
            each as if it became too much.
    """

    wildcards: Literal["all", "only-parent", "none"] = "all"
    descendants: Literal["all", "single", "none"] = "all"
    leading: bool = True
    substitutes_max: int = 1 << 10
    filters_max: int = 1 << 10
    steps_max: int = 1 << 13
    all_steps_max: int = 1 << 26


ROOT = "#"
"""What the root element is a child of. No element is called so."""

Reached = str | frozenset[str]
"""What the steps before may stand at: an element, ``ROOT``, or several where a ``*`` was left."""
_CACHE_MAX = 1 << 19
_CODES_MAX = 256  # steps of a filter: it is pruned by recursion


class TooManyError(Exception):
    """The filter would become more than the heuristics allow."""


class Pruner:
    """Prunes filters with one DTD.

    >>> from tamis.schema.graph import SchemaGraph
    >>> from tamis.schema.reader import parse_dtd
    >>> pruner = Pruner(SchemaGraph.of(parse_dtd('''
    ...     <!ELEMENT a (b, c, d)>  <!ELEMENT b (f)>  <!ELEMENT c (f)>  <!ELEMENT d (e)>
    ...     <!ELEMENT e (f)>        <!ELEMENT f (i | j)>                <!ELEMENT i (k)>
    ...     <!ELEMENT j (k)>        <!ELEMENT k EMPTY>''')))
    >>> [pruner.labels.written(found) for found in pruner.prune(pruner.labels.read("/a//f"))]
    ['/a/b/f', '/a/c/f', '/a/d/e/f']
    >>> pruner.failure(pruner.labels.read("//c/k"))
    'k is never a child of c'
    """

    def __init__(
        self,
        graph: SchemaGraph | ExpandedGraph,
        heuristics: Heuristics = Heuristics(),  # noqa: B008 - it is immutable
        labels: Labels | None = None,
    ) -> None:
        from tamis.schema.graph import ExpandedGraph  # noqa: PLC0415 - few have a DTD

        self.graph = graph if isinstance(graph, ExpandedGraph) else ExpandedGraph(graph)
        self.heuristics = heuristics
        self.labels = labels or Labels()
        self._cache: dict[tuple[Codes, Reached], tuple[Codes, ...] | None] = {}
        self._remembered = 0  # filters and lists of these
        self._steps = 0  # of all that was pruned
        # What these find is remembered as long as the pruner is.
        self._children = cache(self._find_children)
        self._below = cache(self._find_below)
        self._substitutes = cache(self._find_substitutes)
        self._choices = cache(lambda code, reached: tuple(self._find_choices(code, reached)))

    def prune(
        self, codes: Codes, reached: Reached = ROOT, *, existence_only: bool = False
    ) -> tuple[Codes, ...]:
        """The pruned filters whose union it is; none, if it is true of no document of the DTD.

        A filter begins at what was ``reached``. ``existence_only``: nothing is asked but whether
        there is a node, so ``//*`` at the end is ``/*``. Else the pruned filters lead to the very
        nodes that this one leads to.
        """
        codes = rewritten(codes, existence_only)
        if self._remembered > _CACHE_MAX:
            self._cache.clear()
            self._remembered = 0
        try:
            if len(codes) > _CODES_MAX or self._steps > self.heuristics.all_steps_max:
                raise TooManyError
            self._steps += self.heuristics.steps_max  # if it is too many, it took as long
            found = self._pruned(codes, reached)
            self._steps += sum(map(len, found)) - self.heuristics.steps_max
            return found
        except TooManyError:
            if self.careful is not self:
                return self.careful.prune(codes, reached, existence_only=existence_only)
            return (codes,) if self.failure(codes, reached) is None else ()

    def end(self, codes: Codes, reached: Reached = ROOT) -> Reached:
        """What a filter leads to; nothing (no element) where it can never match."""
        count, reached = self._follow(codes, reached)
        return reached if count == len(codes) else frozenset()

    def failure(self, codes: Codes, reached: Reached = ROOT) -> str | None:
        """Why a filter can never match, in words; None if it can (Algorithm 1)."""
        count, reached = self._follow(codes, reached)
        return None if count == len(codes) else self._said(codes[count], reached)

    def _follow(self, codes: Codes, reached: Reached) -> tuple[int, Reached]:
        """How many steps lead to something, and to what."""
        for count, code in enumerate(codes):
            found = self._passing(code, reached)
            if not found:
                return count, reached
            name = self.labels.names[code >> 1]
            reached = found if is_open(name) else name
        return len(codes), reached

    def _passing(self, code: int, reached: Reached) -> frozenset[str]:
        found = self._below(reached) if code & 1 else self._children(reached)
        name = self.labels.names[code >> 1]
        if code >> 1 == WILDCARD:
            return found
        if is_open(name):
            return frozenset(inner for inner in found if inner.startswith(name[:-1]))
        return found & {name}

    def _said(self, code: int, reached: Reached) -> str:
        name, descends = self.labels.names[code >> 1], code & 1
        where = reached if isinstance(reached, str) else f"any of {', '.join(sorted(reached))}"
        if code >> 1 == WILDCARD:
            return f"nothing may stand in {where}"
        if is_open(name):
            return f"nothing of {name} is {'inside' if descends else 'a child of'} {where}"
        if name not in self.graph:
            return f"{name} is not declared"
        if reached == ROOT:
            roots = " or ".join(self.graph.roots)
            return f"{name} is never inside {roots}" if descends else f"the root is {roots}"
        return f"{name} is never {'inside' if descends else 'a child of'} {where}"

    # -- the algorithm -----------------------------------------------------------------------------

    def _pruned(self, codes: Codes, reached: Reached) -> tuple[Codes, ...]:
        """All that the rest of a filter becomes, behind what was reached (Algorithm 2)."""
        if not codes:
            return ((),)
        key = codes, reached
        if key in self._cache:
            found = self._cache[key]
            if found is None:
                raise TooManyError
            return found
        self._cache[key] = None  # until it is known not to be too many
        heuristics = self.heuristics
        pruned: list[Codes] = []
        for written, end in self._choices(codes[0], reached):
            # No two are the same: names differ, or the name of this step stands once in each string
            # that is written for it, at its end, since it is on no cycle.
            pruned += [written + tail for tail in self._pruned(codes[1:], end)]
            if len(pruned) > heuristics.filters_max:
                raise TooManyError
        if sum(map(len, pruned)) > heuristics.steps_max:
            raise TooManyError
        self._cache[key] = found = tuple(pruned)
        self._remembered += 1 + len(found)
        return found

    def _find_choices(self, code: int, reached: Reached) -> Iterator[tuple[Codes, Reached]]:
        """What may be written for a step behind what was reached, and what each leads to."""
        name, descends = self.labels.names[code >> 1], bool(code & 1)
        found = self._passing(code, reached)
        if not found:
            return
        if is_open(name):
            if self._eliminates_wildcard(reached, found, descends):
                for inner in sorted(found):
                    yield from self._choices(self.labels.of(inner) << 1 | descends, reached)
            else:
                yield (code,), found
            return
        strings: tuple[tuple[str, ...], ...] = ()
        if descends and isinstance(reached, str) and (reached != ROOT or self.heuristics.leading):
            strings = self._substitutes(reached, name)
        for string in strings:
            yield tuple(self.labels.of(inner) << 1 for inner in string), name
        if not strings:
            yield (code,), name

    def _eliminates_wildcard(self, reached: Reached, found: frozenset[str], descends: bool) -> bool:
        which = self.heuristics.wildcards
        if which != "only-parent":
            return which == "all"
        if descends or not isinstance(reached, str):
            return False
        children, parents = self.graph.children, self._parents
        return all(parents[child] == {reached} or not children(child) for child in found)

    def _find_substitutes(self, above: str, below: str) -> tuple[tuple[str, ...], ...]:
        """The paths that lead from one element to another, without the first and with the last.

        None of them where there are too many, or ``//`` between the two is not to be eliminated.
        In a DTD that is a tree there is one, which is found from below without a search. (The paper
        has all pairs in a table; here each is found when it is first asked for.)
        """
        if self.heuristics.descendants == "none":
            return ()
        if self._is_tree:
            upwards = [below]
            while above not in self._parents[upwards[-1]]:
                upwards += self._parents[upwards[-1]]
            return (tuple(reversed(upwards)),)
        if self._is_on_cycle(above) or self._is_on_cycle(below):
            return ()
        found: list[tuple[str, ...]] = []
        left = self.heuristics.substitutes_max
        most = 1 if self.heuristics.descendants == "single" else left
        path: list[str] = []
        ways = [iter(self._children_in_order(above))]  # of each element on the path, what is left
        while ways:
            child = next(ways[-1], None)
            if child is None:
                ways.pop()
                del path[-1:]
            elif child == below:
                found.append((*path, child))
                left -= len(path) + 1
            elif below in self.graph.reaches(child):
                if self._is_on_cycle(child):  # there are as many paths as you like
                    return ()
                path.append(child)
                ways.append(iter(self._children_in_order(child)))
            if len(found) > most or left < len(path):
                return ()
        return tuple(found)

    # -- the graph, with the root's parent ---------------------------------------------------------

    def _children_in_order(self, name: str) -> Iterable[str]:
        return self.graph.roots if name == ROOT else self.graph.children(name)

    def _find_children(self, reached: Reached) -> frozenset[str]:
        if isinstance(reached, str):
            return frozenset(self._children_in_order(reached))
        return frozenset().union(*map(self._children, reached))

    def _find_below(self, reached: Reached) -> frozenset[str]:
        if reached == ROOT:
            return frozenset(self.graph.reachable)
        if isinstance(reached, str):
            return self.graph.reaches(reached)
        return frozenset().union(*map(self._below, reached))

    def _is_on_cycle(self, name: str) -> bool:
        return name != ROOT and name in self.graph.reaches(name)

    @cached_property
    def _parents(self) -> dict[str, set[str]]:
        """Of the elements that documents may have."""
        found: dict[str, set[str]] = {name: set() for name in self.graph.reachable}
        for name in (ROOT, *self.graph.reachable):
            for child in self._children_in_order(name):
                found[child].add(name)
        return found

    @cached_property
    def _is_tree(self) -> bool:
        return all(len(parents) == 1 for parents in self._parents.values()) and not any(
            map(self._is_on_cycle, self.graph.reachable)
        )

    @cached_property
    def careful(self) -> Pruner:
        """Prunes by the rules that make few filters; or itself, where it does so."""
        wildcards, descendants = self.heuristics.wildcards, self.heuristics.descendants
        careful = self.heuristics._replace(
            wildcards="only-parent" if wildcards == "all" else wildcards,
            descendants="single" if descendants == "all" else descendants,
        )
        return self if careful == self.heuristics else Pruner(self.graph, careful, self.labels)


def rewritten(codes: Sequence[int], existence_only: bool = False) -> Codes:
    """A filter with its ``//`` behind the ``*`` that they stand before.

    ``//*/b`` is ``/*//b``: something, and a b below it. ``//*`` at the end is ``/*`` where nothing
    is asked but whether there is such a node.

    >>> labels = Labels()
    >>> [labels.written(rewritten(labels.read("//*/*"), only)) for only in (True, False)]
    ['/*/*', '/*//*']
    """
    found: list[int] = []
    descends = 0
    for code in codes:
        descends |= code & 1
        if code >> 1 == WILDCARD:
            found.append(WILDCARD)
        else:
            found.append(code | descends)
            descends = 0
    if descends and not existence_only:
        found[-1] |= 1
    return tuple(found)
