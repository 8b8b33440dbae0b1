"""SaxonC, the oracle of transformations: XQuery 3.1, on documents as they are written."""

from __future__ import annotations

from functools import cache
from typing import Any

from lxml import etree
from saxonche import PySaxonProcessor


@cache
def _processor() -> Any:
    processor = PySaxonProcessor(license=False)
    feature = "http://saxon.sf.net/feature/"
    processor.set_configuration_property(f"{feature}strip-whitespace", "none")
    processor.set_configuration_property(f"{feature}validation", "off")
    return processor


def transformed(query: str, document: str | bytes) -> str:
    """What Saxon makes of a document.

    Raises:
        SaxonError: it is in error.
    """
    text = document if isinstance(document, str) else document.decode()
    processor = _processor()
    xquery = processor.new_xquery_processor()
    xquery.set_context(xdm_item=processor.parse_xml(xml_text=text))
    xquery.set_query_content(query)
    try:
        found = xquery.run_query_to_string()
    except Exception as error:
        raise SaxonError(str(error)) from None
    if found is None:
        raise SaxonError(xquery.error_message or "no result")
    return str(found)


class SaxonError(Exception):
    """The query, or its evaluation, is in error."""


def canonical(xml: str | bytes) -> bytes:
    """Canonical XML, which is equal for documents that are."""
    parser = etree.XMLParser(resolve_entities=False, huge_tree=True)
    root = etree.fromstring(xml.encode() if isinstance(xml, str) else xml, parser)
    return etree.tostring(root, method="c14n")
