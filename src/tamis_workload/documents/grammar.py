"""Documents of a DTD, which becomes a template of what it permits, and of nothing else."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tamis.core.errors import UsageError
from tamis.documents.rewrite import IN_VALUE
from tamis.schema.dtd import (
    AttributeKind,
    AttributeType,
    Child,
    ContentKind,
    ElementType,
    Occurs,
    Particle,
    Presence,
)
from tamis.schema.graph import SchemaGraph
from tamis_workload.documents.kernels import Template
from tamis_workload.documents.template import Bounds, Expansion, TemplateBuilder
from tamis_workload.draws import Values
from tamis_workload.names import Bindings

Range = tuple[int, int]


@dataclass(frozen=True)
class DocumentOptions:
    """How what a DTD leaves open is drawn.

    Attributes:
        repeats: how often what has ``*`` or ``+`` is there, from and to, each number as likely;
            once at least for ``+``, and less where depth or size leave no room.
        repeats_of: the same for elements of some names, where they have a ``*`` or ``+`` of their
            own.
        optional: the probability of what has ``?``, of attributes that may be left out, and of text
            beside elements.
        values: the texts of elements and attributes.
    """

    repeats: Range = (0, 3)
    repeats_of: Mapping[str, Range] = field(default_factory=dict)
    optional: float = 0.5
    values: Values = field(default_factory=Values)

    def __post_init__(self) -> None:
        for name, (low, high) in {"": self.repeats, **self.repeats_of}.items():
            if not 0 <= low <= high <= 1_000_000:
                of = f" of <{name}>" if name else ""
                raise UsageError(f"repeats{of} are from and to, 0 to 1,000,000, not {low}..{high}")
        if not 0 <= self.optional <= 1:
            raise UsageError(f"the probability of what is optional is 0 to 1, not {self.optional}")


def template_of(graph: SchemaGraph, options: DocumentOptions) -> Template:
    """The template of the valid documents of a DTD, which begin with its root.

    An element or attribute whose prefix is nowhere declared is left out: the document would not be
    well-formed in XML with namespaces.
    """
    grammar = _Grammar(graph, options)
    template = grammar.template()
    for name in options.repeats_of:
        if name not in graph.dtd.elements:
            raise UsageError(f"repeats of <{name}>, which the DTD does not declare")
        if name not in grammar.repeated:
            raise UsageError(f"repeats of <{name}>, which nowhere has a * or + of its own")
    return template


def escaped(value: str) -> str:
    r"""The value of an attribute as it is written in double quotes: reading gives it back.

    >>> escaped('a < "b" & \n')
    'a &lt; &quot;b&quot; &amp; &#10;'
    """
    return value.translate(IN_VALUE)


class _Grammar:
    def __init__(self, graph: SchemaGraph, options: DocumentOptions) -> None:
        self.dtd = graph.dtd
        self.root = graph.root
        self.options = options
        self.bindings = Bindings(graph)
        self.builder = TemplateBuilder()
        self.repeated: set[str] = set()
        self.text = self.builder.value(options.values)
        # Each element has a node before any content: elements can be inside themselves.
        self.elements = {name: self.builder.element() for name in graph.dtd.elements}
        self.impossible = self.builder.element()
        self.builder.set_element(self.impossible, self.impossible)

    def template(self) -> Template:
        for name, node in self.elements.items():
            element = self.dtd.elements[name]
            self.builder.set_element(node, self.element(element))
        return self.builder.build(self.elements[self.root])

    def element(self, element: ElementType) -> int:
        """The tags of an element, and what is inside."""
        build = self.builder
        name = element.name
        if not self.bindings.is_bound(name, name):
            return self.impossible
        declared = [
            build.text(f' xmlns{prefix and ":"}{prefix}="{escaped(uri)}"')
            for prefix, uri in self.bindings.written_on(name)
        ]
        attributes = []
        taken: set[tuple[str, str]] = set()  # two prefixes of one namespace make equal names
        for attribute in element.attributes:
            expanded = self.bindings.expanded(attribute.name)
            attributes += self.attribute(name, attribute, is_possible=expanded not in taken)
            taken.add(expanded)
        opening = [build.text(f"<{name}"), *declared, *attributes]
        if element.kind is ContentKind.EMPTY:
            return build.sequence(*opening, build.text("/>"))
        content = self.content(element)
        return build.sequence(*opening, build.text(">"), *content, build.text(f"</{name}>"))

    # -- content -------------------------------------------------------------------------------

    def content(self, element: ElementType) -> Iterable[int]:
        """What is between the tags."""
        if element.kind is ContentKind.CHILDREN:
            assert element.model is not None
            return [self.particle(element.model)]
        if element.kind is ContentKind.ANY:
            return self.any_content
        return self.mixed(element.children)

    @cached_property
    def any_content(self) -> list[int]:
        """The same nodes for all elements with ``ANY`` content."""
        return self.mixed(self.elements)

    def mixed(self, names: Iterable[str]) -> list[int]:
        """Text, and elements of these names among it."""
        inside = [self.elements[name] for name in names if name in self.elements]
        if not inside:
            return [self.text]
        # Each text is between elements, so that it is one value and no two values run together.
        sometimes = self.builder.optional(self.text, self.options.optional)
        one = self.builder.sequence(self.builder.choice(*inside), sometimes)
        low, high = self.options.repeats
        return [sometimes, self.builder.loop(one, low, high, least=0, grows=True)]

    def particle(self, particle: Particle) -> int:
        build = self.builder
        if isinstance(particle, Child):
            part = self.elements.get(particle.name, self.impossible)
            repeats = self.options.repeats_of.get(particle.name, self.options.repeats)
        else:
            parts = [self.particle(part) for part in particle.parts]
            part = build.choice(*parts) if particle.is_choice else build.sequence(*parts)
            repeats = self.options.repeats
        if particle.occurs is Occurs.ONCE:
            return part
        if particle.occurs is Occurs.OPTIONAL:
            return build.optional(part, self.options.optional)
        if isinstance(particle, Child):
            self.repeated.add(particle.name)
        low, high = repeats
        least = 1 if particle.occurs is Occurs.ONE_OR_MORE else 0
        return build.loop(part, max(low, least), max(high, least), least=least, grows=True)

    # -- attributes ----------------------------------------------------------------------------

    def attribute(self, element: str, attribute: AttributeType, is_possible: bool) -> list[int]:
        """An attribute, if it is ever written."""
        name = attribute.name
        if name == "xmlns" or name.startswith("xmlns:"):
            return []  # written where it is needed, see Bindings
        build = self.builder
        required = attribute.presence is Presence.REQUIRED
        value = self.attribute_value(attribute)
        if not is_possible or value is None or not self.bindings.is_bound(element, name):
            return [self.impossible] if required else []
        part = build.sequence(build.text(f' {name}="'), value, build.text('"'))
        return [part if required else build.optional(part, self.options.optional)]

    def attribute_value(self, attribute: AttributeType) -> int | None:
        """A node for the value, or None where no value is valid."""
        build = self.builder
        if attribute.name == "xml:id" and attribute.kind is not AttributeKind.ID:
            return None  # its values have to be names, and all different, whatever the DTD says
        if attribute.presence is Presence.FIXED:
            if attribute.kind in (AttributeKind.IDREF, AttributeKind.IDREFS):
                return None  # nobody has that ID
            if "&" in (attribute.default or "") or "<" in (attribute.default or ""):
                return None  # libxml2 takes no such value for the fixed one; it can be left out
            return build.text(escaped(attribute.default or ""))
        match attribute.kind:
            case AttributeKind.CDATA | AttributeKind.NMTOKEN | AttributeKind.NMTOKENS:
                return self.text
            case AttributeKind.ENUMERATION:
                return self.one_of(attribute.values)
            case AttributeKind.NOTATION:
                return self.one_of([v for v in attribute.values if v in self.dtd.notations])
            case AttributeKind.ID:
                return build.sequence(build.text("id"), build.id())
            case AttributeKind.IDREF:
                return build.sequence(build.text("id"), build.reference())
            case AttributeKind.IDREFS:
                one = build.sequence(build.text("id"), build.reference())
                more = build.sequence(build.text(" id"), build.reference())
                return build.sequence(one, build.loop(more, 0, 2))
            case AttributeKind.ENTITY | AttributeKind.ENTITIES:
                return self.one_of(self.dtd.unparsed_entities)

    def one_of(self, values: Sequence[str]) -> int | None:
        """A node for one of these, or None where there are none."""
        return self.builder.choice(*map(self.builder.text, values)) if values else None


class Documents:
    """The documents of a DTD: the n-th is the same whatever else is made.

    Args:
        graph: the DTD; documents begin with its ``root``.
        options: how what the DTD leaves open is drawn.
        depth: levels of elements, at most.
        size: bytes of a document, at most (2**40). Where they run short, what the DTD lets be left
            out is: so small documents have more of what comes first.
        records: how often what may repeat without end, and is in nothing else that may, repeats; 0
            leaves that to the options.
        fill: let it repeat until the size is reached, as nearly as can be: what was kept for a part
            at the end that is optional, and then left out, stays unused.
        seed: another one makes others.

    Raises:
        UsageError: no valid document is within the depth and the size.

    >>> from tamis.schema.reader import parse_dtd
    >>> graph = SchemaGraph.of(parse_dtd("<!ELEMENT bib (book*)> <!ELEMENT book (#PCDATA)>"))
    >>> documents = Documents(graph, records=2, seed=1)
    >>> documents.document(0), documents.document(1)
    (b'<bib><book>1</book><book>7</book></bib>', b'<bib><book>2</book><book>4</book></bib>')
    """

    def __init__(
        self,
        graph: SchemaGraph,
        *,
        options: DocumentOptions | None = None,
        depth: int = 12,
        size: int = 65_536,
        records: int = 0,
        fill: bool = False,
        seed: int = 0,
    ) -> None:
        depth, size, records = map(operator.index, (depth, size, records))
        if not 1 <= depth <= 1000:
            raise UsageError(f"the depth of documents is 1 to 1,000, not {depth:,}")
        if not 0 <= records <= 1 << 40:
            raise UsageError(f"the number of records is 0 to {1 << 40:,}, not {records:,}")
        if records and fill:
            raise UsageError("ask for a number of records or for filled documents, not for both")
        height = graph.height(graph.root)
        if height is None:
            raise UsageError(
                f"there is no finite document: what <{graph.root}> has to have in it has to have "
                "itself in it, or what is not declared"
            )
        if height > depth:
            raise UsageError(f"the shallowest document has {height:,} levels, more than {depth:,}")
        template = template_of(graph, options or DocumentOptions())
        self._expansion = Expansion(template, Bounds(depth, size, records, fill))
        self._seed = seed

    def document(self, number: int) -> bytes:
        """One of them, from 0."""
        return self._expansion.document(self._seed, number)

    def pieces(self, number: int) -> Iterator[bytes]:
        """One of them, in pieces of some mebibyte: it need not fit into memory."""
        return self._expansion.pieces(self._seed, number)
