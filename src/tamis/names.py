"""The names of XML 1.0, fifth edition."""

from __future__ import annotations

import re

NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
"""The characters that a name may begin with, but for the colon, for a class of characters."""
NAME_REST = rf"\-.0-9\u00b7\u0300-\u036f\u203f-\u2040{NAME_START}"
"""The characters that may follow, likewise."""
NCNAME = f"[{NAME_START}][{NAME_REST}]*"
QNAME = re.compile(f"(?:({NCNAME}):)?({NCNAME})")
"""A name with its prefix, if there is one."""
