"""Pieces of XML that mutations put into documents: those that keep them well-formed, and others."""

from __future__ import annotations


def _pieces(text: str | bytes) -> list[bytes]:
    return (text.encode() if isinstance(text, str) else text).split(b"|")


# Well-formed inside an element.
CONTENT: list[bytes] = [
    *_pieces(b"x|1|text | |\t|\n|\r|\r\n|]|'|\"|--|=|/|?"),
    *_pieces("é|€|😀|\u2028|\x85|\x7f|日本|\ufeff|\ufffd"),
    *_pieces(b"&amp;|&lt;|&gt;|&quot;|&apos;|&#65;|&#x41;|&#x1F600;|&#9;|&#10;|&#13;|&#x000020;"),
    *_pieces(b"<e/>|<e></e>|<e />|<a>x</a>|<e\n>y</e\n>|<p:e xmlns:p='u'/>"),
    *_pieces(b"<e xmlns='u'><f/></e>|<e x='1'/>|<e x=\"2\" y='>'/>|<e xml:lang='en'/>"),
    *_pieces(b"<e xmlns:p='u' p:x='1' x='2'/>|<p:e xmlns:p='u'><p:e xmlns:p='v'/></p:e>"),
    *_pieces(b"<![CDATA[]]>|<![CDATA[x]]>|<![CDATA[<&]]]]>|<!---->|<!--c-->|<!-- - -->"),
    *_pieces(b"<?p?>|<?p d?>|<?p ??>|<?xml-x a='1'?>|<?p\n d ?>"),
    b"y" * 64,
    b"<e>" * 5 + b"</e>" * 5,
]
# Well-formed before the end of a start tag, unless the tag has that attribute already.
ATTRIBUTES: list[bytes] = [
    *_pieces(b" q='1'| q1=\"2\"|\nq2 = 'x'|\tq3=''| q4='>'| q5='/>'| q6='\"'| q7=\"'\"| q8='&lt;'"),
    *_pieces(b" q9='&#10;'| qa='a\tb'| qb='a\r\nb'| qc=' a  b '| xml:lang='en'| xml:space='x'"),
    *_pieces(b" xmlns:z='urn:z'| xmlns:y='urn:z' y:q='1'| xmlns:w='urn:z' w:q=''"),
    *_pieces(" qd='é'| qe='😀'| é='1'| qf=']]>'| qg='--'"),
    b" qh='" + b"w" * 70 + b"'",
]
# Well-formed in any tag, before its end.
SPACES: list[bytes] = _pieces(b" | |\t|\n|\r\n|  \n\n")
# Well-formed before the root (most of them), and after it.
PROLOG: list[bytes] = [
    *_pieces(b"<!DOCTYPE a>|<!DOCTYPE a SYSTEM 'x'>|<!DOCTYPE a PUBLIC \"x\" 'y' >"),
    *_pieces(b"<?xml version='1.0'?>|<?xml version=\"1.0\" encoding='UTF-8'?>\n"),
    b"<?xml version='1.0' encoding='utf-8' standalone='yes' ?>",
    b"\xef\xbb\xbf",
]
EPILOG: list[bytes] = _pieces(b"<!--c-->|<?p d?>| |\n|\r\n|<!-- -->|<?p?>")
# Anything, anywhere.
ANYWHERE: list[bytes] = [
    *_pieces(b"<|>|/|&|;|'|\"|=|!|?|-|[|]|:|#|%|x|a|0|--|]]|]]>|-->|/>|</|<!|<?|?>|<!--|<![CDATA["),
    *_pieces(b" |\t|\n|\r|\r\n|\0|\x01|\x0b|\x1f|\x7f|\x80|\xbf|\xc0|\xc3|\xe2\x82|\xed\xa0\x80"),
    *_pieces(b"\xef\xbf\xbe|\xef\xbf\xbf|\xf0\x9f|\xf4\x90\x80\x80|\xff|\xc2\x85|\xef\xbb\xbf"),
    *_pieces(
        b"<!DOCTYPE|<?xml|xmlns|xmlns:|xml:|&#|&#x|&amp|&u;|&#0;|&#xD800;|&#xFFFF;|&#x110000;"
    ),
    *_pieces(b"&#99999999999;|</a>|<a>|<a/>|xmlns=''|<?p:q d?>|<?XML?>|<?xml?>|]]]>|<!--x--->"),
    *_pieces(b" x='1'| xmlns='u'| xmlns:p='u'| xmlns:p=''| p:x='1'| xmlns:xml='u'| :| a:"),
    *_pieces(b"<!DOCTYPE a []>|<!DOCTYPE a [<!ENTITY u 'v'>]>|<!ENTITY u 'v'>|version='1.1'"),
    *CONTENT,
    *ATTRIBUTES,
    *PROLOG,
]
