"""The keys of filters: what an event must have for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, distinct, flat_indices, starts_of
from tamis.core.kernel import ahocorasick
from tamis.core.kernel.table import slots_for
from tamis.events import model
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels.ranks import intern_constants
from tamis.events.engines.signature.program import Texts
from tamis.events.model import FilterTable

_ACCEPTS = np.array([at.NUMBERS, at.NUMBERS, at.STRINGS, at.BOOLEANS], np.int32)
"""By kind."""
_ITEMS_MAX = 64
"""Items of ``in`` that are compared like ``=``; of more, the list is searched."""
_COPIES_EACH, _COPIES_MIN = 8, 1 << 16
"""For these, there are so many more filters at most, by the filters that there were."""
_PART_MAX = 256
"""Bytes of a part of strings that is a key: each may be a node of the automaton."""


class Keys(NamedTuple):
    """The keys of a filter table: first those of names, then one for each part of strings.

    Attributes:
        of: int32[c]; the key of each constraint.
        key_of: see ``Ranks``.
        names: int32[k]; they ascend. Parts of strings have names of their own.
        accepts: uint8[k]; what values.
        texts: int64[t, 3]; of the last keys: the name, the operator and the string.
        are_texts: bool[c]; which constraints have these keys.
    """

    of: Int32
    key_of: Int32
    names: Int32
    accepts: Bytes
    texts: Int64
    are_texts: NDArray[np.bool_]


def with_items(table: FilterTable) -> tuple[FilterTable, Int32]:
    """The same with a filter for each item of ``in``; and which filter each stands for.

    At most one of them is true of an event, and it is found as others with ``=`` are. Of several
    lists of a filter, the longest one is divided. Very long lists are not, nor are any others, the
    longest ones first, where the filters would become too many.
    """
    starts, lists = table.starts, np.flatnonzero(table.operators == model.IN)
    sizes = np.diff(table.list_starts)[table.values[lists]]
    is_short = (sizes > 1) & (sizes <= _ITEMS_MAX) & (table.kinds[lists] != model.BOOLEAN)
    lists, sizes = lists[is_short], sizes[is_short]
    if not len(lists):
        return table, np.arange(table.filters, dtype=np.int32)
    owners = np.searchsorted(starts, lists, "right") - 1
    order = np.lexsort((-sizes, owners))
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = np.diff(owners[order]) > 0
    chosen = order[is_first]
    by_size = chosen[np.argsort(sizes[chosen], kind="stable")]
    most = _COPIES_EACH * table.filters + _COPIES_MIN
    chosen = np.sort(by_size[np.cumsum(sizes[by_size]) <= most])
    lists, sizes, owners = lists[chosen], sizes[chosen], owners[chosen]
    copies = np.ones(table.filters, np.int64)
    copies[owners] = sizes
    origins = np.repeat(np.arange(table.filters, dtype=np.int32), copies)
    counts = np.diff(starts)[origins]
    own, new_starts = flat_indices(starts[origins], counts), starts_of(counts)
    operators, kinds, values = table.operators[own], table.kinds[own], table.values[own]
    items = flat_indices(table.list_starts[table.values[lists]], sizes)
    filters = flat_indices(starts_of(copies)[owners], sizes)
    places = new_starts[filters] + np.repeat(lists - starts[owners], sizes)
    operators[places] = model.EQ
    kinds[places], values[places] = table.list_kinds[items], table.list_values[items]
    divided = table._replace(
        starts=new_starts,
        constraint_names=table.constraint_names[own],
        operators=operators,
        kinds=kinds,
        values=values,
        subscriptions=table.subscriptions[origins],
    )
    return divided, origins


def find_keys(table: FilterTable) -> Keys:
    """The keys of all constraints; ``suffix`` and ``contains`` have one for each constant."""
    is_any = table.operators == model.EXISTS
    accepts = np.where(is_any, np.int32(at.ANYTHING), _ACCEPTS[table.kinds])
    wide = table.constraint_names * 4 + accepts
    are_texts = np.isin(table.operators, [model.SUFFIX, model.CONTAINS])
    lengths = np.diff(table.string_starts)
    sizes = lengths[table.values[are_texts]]
    are_texts[are_texts] = (sizes > 0) & (sizes <= _PART_MAX)  # all strings have the empty one
    names, operators = table.constraint_names[are_texts], table.operators[are_texts]
    values = table.values[are_texts]
    firsts, numbers = np.zeros((2, len(values)), np.int32)
    count = intern_constants(names, operators, values, slots_for(len(values)), firsts, numbers)
    of_key = firsts[:count]
    texts = np.stack([names[of_key], operators[of_key], values[of_key]], axis=1, dtype=np.int64)
    is_used = np.zeros(4 * len(table.names), np.bool_)
    is_used[wide[~are_texts]] = True
    used = np.flatnonzero(is_used).astype(np.int32)
    key_of = np.full(len(is_used), -1, np.int32)
    key_of[used] = np.arange(len(used), dtype=np.int32)
    of = key_of[wide]
    of[are_texts] = len(used) + numbers
    names = len(table.names) + np.arange(len(texts), dtype=np.int32)
    accepted = np.full(len(texts), at.ANYTHING, np.uint8)
    return Keys(
        of,
        key_of,
        np.concatenate([used // 4, names]),
        np.concatenate([(used % 4).astype(np.uint8), accepted]),
        texts,
        are_texts,
    )


def make_texts(table: FilterTable, keys: Keys) -> Texts:
    """The automaton of all parts of strings."""
    names, operators, strings = keys.texts.T
    used = distinct(names)
    first = len(used) + 1
    roots = np.zeros(len(table.names), np.int32)
    roots[used] = np.arange(1, first)
    starts = table.string_starts
    sizes = starts[strings + 1] - starts[strings]
    symbols = table.string_bytes[flat_indices(starts[strings], sizes)].astype(np.int32)
    automaton, ends = ahocorasick.build(first, roots[names], starts_of(sizes), symbols)
    parts: list[Int32] = []
    for operator in (model.CONTAINS, model.SUFFIX):
        own = np.flatnonzero(operators == operator)
        found = np.full(len(automaton.parent), -1, np.int32)
        found[ends[own]] = len(keys.names) - len(keys.texts) + own
        parts += [*ahocorasick.outputs_of(automaton, found), found]
    search = ahocorasick.search_of(automaton, ends, parts[0])
    return Texts(roots, *search, *parts[1:])
