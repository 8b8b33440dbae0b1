"""The names of XML 1.0, fifth edition, and namespaces, both usual and declared ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamis.core.errors import UsageError
from tamis.core.lazy import lazy_pattern

NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""The characters that a name may begin with, but for the colon, for a class of characters."""
NAME_REST = rf"\-.0-9\u00b7\u0300-\u036f\u203f-\u2040{NAME_START}"
"""The characters that may follow, likewise."""
NOT_XML = lazy_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""A character that is in no XML document, so that no expression needs it."""
NCNAME = f"[{NAME_START}][{NAME_REST}]*"
ONLY_NCNAME = lazy_pattern(NCNAME)
QNAME = lazy_pattern(f"(?:({NCNAME}):)?({NCNAME})")
"""A name with its prefix, if there is one."""

XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
USUAL_PREFIXES = {
    "atom": "http://www.w3.org/2005/Atom",
    "cac": "urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2",
    "cbc": "urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2",
    "dc": "http://purl.org/dc/elements/1.1/",
    "ds": "http://www.w3.org/2000/09/xmldsig#",
    "gml": "http://www.opengis.net/gml",
    "html": "http://www.w3.org/1999/xhtml",
    "kml": "http://www.opengis.net/kml/2.2",
    "mathml": "http://www.w3.org/1998/Math/MathML",
    "pom": "http://maven.apache.org/POM/4.0.0",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "soap": "http://schemas.xmlsoap.org/soap/envelope/",
    "soapenv": "http://schemas.xmlsoap.org/soap/envelope/",
    "svg": "http://www.w3.org/2000/svg",
    "wsdl": "http://schemas.xmlsoap.org/wsdl/",
    "xbrli": "http://www.xbrl.org/2003/instance",
    "xhtml": "http://www.w3.org/1999/xhtml",
    "xi": "http://www.w3.org/2001/XInclude",
    "xlink": "http://www.w3.org/1999/xlink",
    "xs": "http://www.w3.org/2001/XMLSchema",
    "xsd": "http://www.w3.org/2001/XMLSchema",
    "xsi": "http://www.w3.org/2001/XMLSchema-instance",
    "xsl": "http://www.w3.org/1999/XSL/Transform",
}
"""Prefix → URI, as people usually declare them. Only hints use this: no prefix is declared."""


def is_ncname(text: str) -> bool:
    """Whether a text is a name without a colon, as the XML Namespaces recommendation has it.

    >>> is_ncname("é-1"), is_ncname("1"), is_ncname("a:b")
    (True, False, False)
    """
    return ONLY_NCNAME.fullmatch(text) is not None


def declared_namespaces(
    namespaces: Mapping[Any, Any] | None, default_namespace: Any = None
) -> dict[str, str]:
    """What is declared, by prefix; the default namespace of elements has the prefix ``""``.

    >>> declared_namespaces({"p": "urn:p"}, "urn:d")
    {'p': 'urn:p', '': 'urn:d'}
    """
    if not isinstance(namespaces, Mapping | None):
        raise UsageError(
            f"namespaces are a mapping of prefix → URI, not {type(namespaces).__name__}"
        )
    declared: dict[str, str] = {}
    for prefix, uri in (namespaces or {}).items():
        if not prefix:  # as ElementTree and lxml have it
            raise UsageError(
                f"{prefix!r} is not a prefix: a default namespace is default_namespace={uri!r}"
            )
        is_one = isinstance(prefix, str) and isinstance(uri, str) and is_ncname(prefix) and uri
        if not is_one or (prefix == "xml" and uri != XML_NAMESPACE):
            raise UsageError(f"not a namespace declaration: {prefix!r} → {uri!r}")
        declared[prefix] = uri
    if default_namespace is not None:
        uri = default_namespace
        if not isinstance(uri, str) or not uri:
            raise UsageError(f"default_namespace is a URI, not {uri!r}")
        declared[""] = uri
    return declared
