"""Every bound in one place, with its default.

Reaching a bound is an error that names it, for the document or the subscription concerned alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from tamis.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """What one document, event, subscription, thread and DTD may cost.

    Attributes:
        document_bytes: size of a document, as it is and decompressed.
        depth: open elements at a time.
        attributes: attributes of one element.
        entity_amplification: characters that entities and attribute defaults may expand to, as a
            multiple of the bytes read.
            Each tag, comment and processing instruction counts as 16 more.
        entity_free_chars: expansion that is always allowed, before the ratio counts.
        entity_references: entities declared with references to other entities; expat follows such
            chains on the C stack.
        subscription_chars: length of an expression.
        subscription_nesting: parentheses, predicates and function calls inside each other.
        subscription_steps: steps of all paths of one expression together; ``//`` is a step.
        subscription_predicates: predicates, comparisons and function calls of one expression, all
            together; of events, constraints.
        subscription_filters: filters of one subscription of events: what ``and`` and ``or`` come to
            as a disjunction of conjunctions.
        subscription_states: states of the automaton of one pattern, of ``like`` or ``matches``.
        event_bytes: an event as it is written, a line of a file.
        event_attributes: attributes of one event.
        event_string_bytes: one attribute's value.
        matched_nodes: nodes of one subscription and document, where nodes are asked for; of more,
            the first ones are given, and it is said that there are more.
        matched_value_bytes: the values of these nodes together, where values are asked for: each
            element around a text has it in its value; beyond, as for ``matched_nodes``.
        transformed_nodes: nodes in the lists of all transformations of one document together, each
            for every bound element around it; a list that transformations share counts once.
        message_bytes: one message, as a subscription transforms a document.
        cache_bytes: what an engine may cache while it matches, in each thread; beyond, the cache
            is cleared. It is at least twice what the open elements of a document need.
        schema_chars: characters of the files of a DTD and of what its entities expand to, all
            together; each entity counts as 16 more. (Real DTDs have been seen to expand 90 times.)
        schema_entities: entities of a DTD that are open inside each other, files included.
        schema_nesting: parentheses inside each other in a content model.

    Raises:
        UsageError: one is not a whole number, or less than 0.

    >>> Limits(depth=100).depth
    100
    """

    document_bytes: int = 1 << 28
    depth: int = 1_000
    attributes: int = 10_000
    entity_amplification: int = 20
    entity_free_chars: int = 1 << 20
    entity_references: int = 200
    subscription_chars: int = 65_536
    subscription_nesting: int = 64
    subscription_steps: int = 1_000
    subscription_predicates: int = 1_000
    subscription_filters: int = 1_000
    subscription_states: int = 10_000
    event_bytes: int = 1 << 24
    event_attributes: int = 10_000
    event_string_bytes: int = 1 << 20
    matched_nodes: int = 1 << 20
    matched_value_bytes: int = 1 << 28
    transformed_nodes: int = 1 << 24
    message_bytes: int = 1 << 24
    cache_bytes: int = 1 << 28
    schema_chars: int = 1 << 23
    schema_entities: int = 100
    schema_nesting: int = 128

    def changed(self) -> dict[str, int]:
        """Those that are not as by default.

        >>> Limits(depth=100).changed()
        {'depth': 100}
        """
        found = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return {name: value for name, value, default in found if value != default}

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise UsageError(f"Limits: {field.name}={value!r} is not a whole number from 0")


DEFAULT_LIMITS = Limits()
