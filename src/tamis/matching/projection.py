"""What queries read of documents, so that the parser can skip the rest.

Each level of a query has a *cover*: names of elements such that each node that the level is about
is one of them, or lies in one. The text that the level reads is that of its cover: of the last
element that a path names, or of all elements where none has been named yet.
"""

from __future__ import annotations

from tamis.documents.vocabulary import ALL_NAMES, NO_NAMES, Names, Projection, Projections
from tamis.language import model as ast
from tamis.language import table as t
from tamis.language.table import QueryTable
from tamis.language.xpath import Operand

_NOTHING, _DOCUMENT = -2, -1
"""Covers of attributes, whose values are not made of text, and of the document; others are numbers
of tests."""


def projection_of(table: QueryTable) -> Projection:
    """What the queries of a table read together beyond the tags.

    >>> from tamis.language.lower import lowered
    >>> from tamis.language.xpath import parse
    >>> projection_of(lowered([parse("//a[b > 1]//*[@c]")]))[:2]
    (Names([('', 'c')]), Names([('', 'b')]))
    """
    names = [*(_names(test) for _, test in table.tests), NO_NAMES, ALL_NAMES]
    attributes: set[int] = set()
    texts: set[int] = set()
    misc = prefixes = False
    covers = [_DOCUMENT]
    words = table.code.tolist()
    for place, word in enumerate(words):
        kind, payload = word & t.KIND_MASK, word >> t.KIND_BITS
        around = covers[-1]
        if kind == t.STEP:
            number = payload >> t.TEST_SHIFT
            is_attribute, test = table.tests[number]
            covers.append(around if names[number] == ALL_NAMES else number)
            if is_attribute:
                attributes.add(number)
                covers[-1] = _NOTHING
            elif test is ast.KindTest.TEXT:
                texts.add(around)
            elif test is ast.KindTest.NODE and _reads_leaves(payload, words[place + 1]):
                texts.add(around)
                misc = True
        elif kind == t.COMPARE:
            functions = payload >> t.FUNCTION_SHIFT
            prefixes |= functions & t.NAME > 0
            if not functions & (t.NAME | t.LOCAL_NAME | t.COUNT):
                texts.add(around)
        elif kind == t.END:
            covers.pop()
        elif kind <= t.NOT:
            covers.append(around)
    found = Projections(Projection(misc=misc, prefixes=prefixes))
    for number in attributes:
        found.add(Projection(attributes=names[number]))
    for number in texts:
        found.add(Projection(text=names[number]))
    return found.total


def _reads_leaves(flags: int, following: int) -> bool:
    """Whether it matters which text and comments a step to ``node()`` leads to.

    Only elements have children and attributes: ``//node()/b`` need not see other nodes.
    """
    of_step = following >> t.KIND_BITS & (t.SELF | t.FIRST | t.COUNTED & ~flags)
    leads_on = following & t.KIND_MASK == t.STEP and not of_step
    return not leads_on and flags & (t.SELF | t.DESCENDANT) != t.SELF


def expression_reading(operand: Operand) -> ast.Expression:
    """An expression that reads what an operand reads: it compares a value."""
    if isinstance(operand, str | float):
        return ast.Constant(True)
    if isinstance(operand, ast.Value):
        is_number = isinstance(operand, ast.Count | ast.StringLength)
        return ast.Compare("=", operand, 0.0 if is_number else "")
    return operand


def _names(test: ast.NodeTest) -> Names:
    """The names that pass a test: one, or any that there are."""
    if isinstance(test, ast.NameTest) and test.namespace is not None and test.local is not None:
        return Names([(test.namespace, test.local)])
    return ALL_NAMES
