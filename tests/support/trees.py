"""Small recursive documents, drawn: chains of elements that branch."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

Tree = tuple[str, list["Tree"]]
"""The name of an element, and its children."""


def chain(names: Sequence[str], inner: list[Tree]) -> Tree:
    """Elements in each other, and what is in the last."""
    for name in reversed(names[1:]):
        inner = [(name, inner)]
    return names[0], inner


def trees(names: str, chain_max: int, leaves_max: int) -> st.SearchStrategy[Tree]:
    """Trees of chains of these names, each a letter."""
    chains = st.text(names, min_size=1, max_size=chain_max)
    return st.recursive(
        st.builds(chain, chains, st.just([])),
        lambda inner: st.builds(chain, chains, st.lists(inner, max_size=4)),
        max_leaves=leaves_max,
    )


def xml(tree: Tree) -> str:
    name, children = tree
    return f"<{name}>{''.join(map(xml, children))}</{name}>"
