"""What lxml and elementpath say of a case, where they are right and where they are not."""

from __future__ import annotations

from collections.abc import Callable

import elementpath
from elementpath.xpath30 import XPath30Parser
from lxml import etree

from tamis.documents.source import Source
from tamis.language.xpath import absolute_xpath
from tamis.matching.engines.lxml.execute import lxml_tree
from tests.support.case_table import Case
from tests.support.oracles import lxml_xpath

CODEPOINTS = "http://www.w3.org/2005/xpath-functions/collation/codepoint"
"""The collation of XPath itself. elementpath's default is the locale's: loading Saxon changes that,
perhaps to one that is not installed.
"""


def tree_of(case: Case) -> etree._ElementTree:
    """The document as lxml reads it, encodings included."""
    document = case.document
    return lxml_tree(
        Source(document.encode(), "utf-8") if isinstance(document, str) else Source(document)
    )


def lxml(case: Case) -> bool:
    return lxml_xpath(case.subscription, case.namespaces)(tree_of(case))


def by_elementpath(case: Case) -> bool:
    """elementpath's answer, on lxml's tree; it knows the names of XPath 3, and lxml does not."""
    if "Q{" in case.subscription or "*:" in case.subscription:
        text = f"boolean({case.subscription})"
        return elementpath.select(
            tree_of(case), text, dict(case.namespaces), XPath30Parser, default_collation=CODEPOINTS
        )
    absolute = absolute_xpath(case.subscription, case.namespaces)
    return elementpath.select(
        tree_of(case), f"boolean({absolute})", dict(case.namespaces), elementpath.XPath1Parser
    )


ORACLES: dict[str, Callable[[Case], bool]] = {"lxml": lxml, "elementpath": by_elementpath}
