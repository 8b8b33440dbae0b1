"""Small documents with every construct of XML, good and bad."""

from __future__ import annotations

_NAMESPACES = r"""
<a xmlns="urn:1"><b xmlns=""><c/></b><d/></a>
<p:a xmlns:p="urn:1"><p:b xmlns:p="urn:2" p:x="1"/><p:b p:x="2"/></p:a>
<a xmlns:p="urn:1" xmlns:q="urn:1"><b p:x="1" q:y="2" x="3"/></a>
<a xmlns:p="urn:1" xmlns:q="urn:1"><b p:x="1" q:x="2"/></a>
<a xmlns="urn:1" x="1"><b xmlns:p="urn:1" p:x="1" x="2"/></a>
<a xmlns="urn:1" xmlns="urn:2"/>
<a p:x="1" xmlns:p="urn:1"><p:b/></a>
<a><p:b/></a>
<a p:x="1"/>
<a xmlns:p=""/>
<a xmlns:p="urn:1"><b xmlns:p=""/></a>
<a xml:lang="en" xml:space="preserve"><xml:b/></a>
<a xmlns:xml="http://www.w3.org/XML/1998/namespace" xml:x="1"/>
<a xmlns:xml="urn:1"/>
<a xmlns:p="http://www.w3.org/XML/1998/namespace" p:lang="en"/>
<a xmlns="http://www.w3.org/XML/1998/namespace"/>
<a xmlns:xmlns="urn:1"/>
<a xmlns:p="http://www.w3.org/2000/xmlns/"/>
<a xmlns="http://www.w3.org/2000/xmlns/"/>
<xmlns:a/>
<a xmlns:a:b="urn:1"/>
<a:b:c xmlns:a="urn:1"/>
<a xmlns:="urn:1"/>
<:a/>
<a:/>
<:/>
<a :x="1"/>
<a x:="1"/>
<a :="1"/>
<a xmlns:xmlfoo="urn:1" xmlns:x="urn:2" xmlnsx="3" xmln="4"><xmlfoo:b/></a>
<a xmlns:p=" urn:&#x31; " xmlns:q=" urn:1 "><p:b p:x="1" q:y="1"/></a>
<a xmlns:p='urn:"1"' p:x='"'><p:b/></a>
<a xmlns="urn:1&#xC;x"/>
<x:a xmlns:x="u"><x:b xmlns:x="v"><x:c xmlns:x="w"/><x:c/></x:b><x:c/></x:a>
<a xmlns="u"><a xmlns="v"><a xmlns="u"><a xmlns=""><a/></a></a></a></a>
<a xmlns:a="u" a:a="1" a="2"><a:a a="3" xmlns="v"/></a>
<p:a xmlns:p="u" xmlns:q="u"></q:a>
<p:a xmlns:p="u"></a>
""".strip().splitlines()

_ATTRIBUTES = r"""
<a x="1" y='2' z = "3"	w	=	'4'/>
<a x=">" y='/>' z="'" w='"'>t</a>
<a x="&lt;&gt;&amp;&quot;&apos;" y='&#60;&#x3e;&#38;'/>
<a x="1" x="2"/>
<a x="1"y="2"/>
<a x = "1"/>
<a x=1/>
<a x/>
<a x="1/>
<a x="<"/>
<a x="&"/>
<a x="&amp"/>
<a x="a	b" y="a&#9;b" z="a&#10;b&#13;c&#32;d"/>
<a x="  a  b  "/>
<a x="" y=''/>
<a x="]]>" y="--&gt;" z="?>"/>
<a x="&u;"/>
<a x="é€😀" é="1"/>
<a 1="x"/>
<a x="1" / >
<a / >
<a/ >
<a x="1"/ >
<a "x"/>
<a x="1" ="2"/>
<a x="1" y= "2" z ="3"></a >
<a b="1" c="2" d="3" e="4" f="5" g="6" h="7" i="8" j="9" k="10" l="11" m="12"/>
<a x="1" xx="2" xxx="3" xxxx="4" xxxxxxxx="5" xxxxxxxxx="6" xxxxxxxxxxxxxxxx="7"/>
""".strip().splitlines()

_CONTENT = r"""
<a/>
<a></a>
<a> </a>
<a>text</a>
<a>x<b/>y<b/>z</a>
<a><b>1</b><b>2</b><c><d>3</d></c></a>
<a>&lt;&gt;&amp;&quot;&apos;</a>
<a>x&amp;y&#65;z&#x1F600;</a>
<a>&#0;</a>
<a>&#1;</a>
<a>&#9;&#10;&#13;&#32;</a>
<a>&#xD800;</a>
<a>&#xDFFF;</a>
<a>&#xFFFE;</a>
<a>&#xFFFF;</a>
<a>&#x10FFFF;</a>
<a>&#x110000;</a>
<a>&#x7F;&#x80;&#x85;&#x9F;</a>
<a>&#4294967361;</a>
<a>&#x100000041;</a>
<a>&#18446744073709551681;</a>
<a>&#0000000000000000000000000065;</a>
<a>&#x0000000000000000000000000041;</a>
<a>&#;</a>
<a>&#x;</a>
<a>&#xg;</a>
<a>&#1a;</a>
<a>&#X41;</a>
<a>& amp;</a>
<a>&;</a>
<a>&amp</a>
<a>&AMP;</a>
<a>&amp ;</a>
<a>&unknown;</a>
<a>&a:b;</a>
<a>&lt</a>
<a>x]]>y</a>
<a>x]]y]>z] ]></a>
<a>]]</a>
<a>x]]&gt;y]]&#62;</a>
<a><![CDATA[<x>&amp;]]]]><![CDATA[>]]></a>
<a>x<![CDATA[]]>y</a>
<a><![CDATA[]]></a>
<a><![CDATA[x]]]]]>y</a>
<a><![CDATA[x]]</a>
<a><![CDATA x]]></a>
<a><![cdata[x]]></a>
<a>x<!--c-->y<!-- - c - -->z</a>
<a><!----></a>
<a><!-- -- --></a>
<a><!--x--->y</a>
<a><!-></a>
<a><!--></a>
<a><!-- <b> & ]]> --></a>
<a>x<?p?>y<?p d?>z<?p  d ? >?></a>
<a><?p?></a><?q r?>
<a><?xml version="1.0"?></a>
<a><?XML x?></a>
<a><?xMl?></a>
<a><?xml-stylesheet href="x"?></a>
<a><?p:q d?></a>
<a><?:p?></a>
<a><??></a>
<a><? p?></a>
<a><?p/?></a>
<a><?p ??></a>
<a><?p?x?></a>
<a><?p x</a>
<a><!b></a>
<a><b></a></b>
<a></b>
<a></a x="1">
<a></ a>
<a></a
<a
<a>
<
</
</a>
<>
</>
<a></>
< a/>
<a><b/></a><c/>
<a/>x
x<a/>
<a/>&#32;
<a/><![CDATA[]]>
<![CDATA[x]]><a/>
&amp;<a/>
<a>></a>
<a>x > y</a>
<a><<b/></a>
<ab></a>
<a></ab>
<éa ñ="ü">日本</éa>
<日本 語="x"><日本/></日本>
<a·b-c._1/>
<-a/>
<.a/>
<1a/>
<_a/>
<a̐/>
<̐a/>
<a×/>
<aͰ/>
<a x="é"><b>é</b></a>
<𐀀/>
<a𠀀/>
""".strip("\n").splitlines()

_PROLOGS = r"""
<?xml version="1.0"?><a/>
<?xml version='1.0' encoding='UTF-8'?><a/>
<?xml version="1.0" encoding="utf-8" standalone="yes"?><a>é</a>
<?xml version="1.0" standalone='no' ?><a/>
<?xml version="1.1"?><a/>
<?xml version="1.5"?><a/>
<?xml version="2.0"?><a/>
<?xml version="1.0" standalone="YES"?><a/>
<?xml version="1.0" standalone="yes" encoding="UTF-8"?><a/>
<?xml encoding="UTF-8"?><a/>
<?xml?><a/>
<?xml ?><a/>
<?xml version="1.0"encoding="UTF-8"?><a/>
<?xml version = "1.0"	encoding = 'UTF-8'?><a/>
<?xml version="1.0" encoding="utf8"?><a>é</a>
<?xml version="1.0" encoding="US-ASCII"?><a>x</a>
<?xml version="1.0" encoding="US-ASCII"?><a>é</a>
<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>
<?xml version="1.0" encoding="UTF-16"?><a/>
<?xml version="1.0" encoding="windows-1252"?><a>é</a>
<?xml version="1.0" encoding="klingon"?><a/>
<?xml version="1.0" encoding=""?><a/>
<?xml version="1.0" encoding="UTF-8" x="1"?><a/>
<?xml version=1.0?><a/>
<?xml version="1.0'?><a/>
<?xml version="1.0">?<a/>
<?xml version="1.0"? ><a/>
<?XML version="1.0"?><a/>
<?xml version="1.0"?><?xml version="1.0"?><a/>
 <?xml version="1.0"?><a/>
<!--c--><?xml version="1.0"?><a/>
<!--c--><?p d?> <a/> <!--c--> <?q?>
<!DOCTYPE a><a/>
<!DOCTYPE a SYSTEM "x.dtd"><a>&u;<b x="&u;"/></a>
<!DOCTYPE a SYSTEM 'x"y'><a/>
<!DOCTYPE a PUBLIC "-//X//Y" "x.dtd"><a>x&u;y</a>
<!DOCTYPE a PUBLIC '-//X//Y' 'x.dtd' ><a/>
<!DOCTYPE a PUBLIC "-//X"><a/>
<!DOCTYPE a PUBLIC "^" "x"><a/>
<!DOCTYPE a PUBLIC "a""b"><a/>
<!DOCTYPE a SYSTEM><a/>
<!DOCTYPE a system "x"><a/>
<!DOCTYPE  a	SYSTEM  "x"  ><!--c--><?p?><a/>
<!DOCTYPE b><a/>
<!DOCTYPE p:a><a/>
<!DOCTYPE :a><a/>
<!DOCTYPE a:b:c><a/>
<!DOCTYPE><a/>
<!DOCTYPE 1><a/>
<!doctype a><a/>
<!DOCTYPEa><a/>
<!DOCTYPE a"x"><a/>
<!DOCTYPE a SYSTEM"x"><a/>
<!DOCTYPE a []><a/>
<!DOCTYPE a [ ]><a>&u;</a>
<!DOCTYPE a [<!ENTITY u "v">]><a>x&u;y</a>
<!DOCTYPE a [<!ENTITY u "<b>&#38;#60;</b>">]><a x="1">&u;</a>
<!DOCTYPE a [<!ATTLIST a x CDATA "1" y ID #IMPLIED>]><a y=" 1  2 "/>
<!DOCTYPE a [<!ENTITY % p "<!ENTITY u 'v'>"> %p;]><a>&u;</a>
<!DOCTYPE a [<!ENTITY u SYSTEM "x">]><a>&u;</a>
<!DOCTYPE a SYSTEM "x" [<!ENTITY u "v">]><a>&u;&w;</a>
<!DOCTYPE a [<!-- ]> --> <?p ]> ?>]><a/>
<!DOCTYPE a [<!ELEMENT a ANY>]><!--c--><a/>
<!DOCTYPE a><!DOCTYPE a><a/>
<a/><!DOCTYPE a>
<a><!DOCTYPE a></a>
<!--c--><!DOCTYPE a><?p?><a/>
<?p d?><!DOCTYPE a SYSTEM "x"><!--d--><a/><!--e-->
<?xml version="1.0"?><!DOCTYPE a SYSTEM "x"><a>&u;</a>
<?xml version="1.0" standalone="yes"?><!DOCTYPE a SYSTEM "x"><a>&u;</a>
<?xml version="1.0" standalone="no"?><!DOCTYPE a SYSTEM "x"><a>&u;&amp;&u;</a>
<?xml version="1.0" standalone="yes"?><!DOCTYPE a SYSTEM "x"><a x="&u;"/>
<!DOCTYPE a SYSTEM "x"><a x="1&u;2">1&u;2</a>
<!DOCTYPE a SYSTEM "x"><a>x<!--&u;-->y&u;<b/>&u;<![CDATA[&u;]]></a>
<!DOCTYPE a PUBLIC "x" "y"><a>&u:v;&:;</a>
""".strip().splitlines()

_BYTES = [
    b"",
    b" ",
    b"\n",
    b"x",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf<a/>",
    b"\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?><a>\xc3\xa9</a>",
    b"\xef\xbb\xbf\xef\xbb\xbf<a/>",
    b"<a>\xef\xbb\xbf</a>",
    b"<a/>\xef\xbb\xbf",
    b"\r\n<a/>\r\n",
    b"<a>\r</a>",
    b"<a>\r\n</a>",
    b"<a>\r\r\n\n\r</a>",
    b"<a>x\r\ny\rz\n</a>",
    b"<a x='1\r\n2\r3\n4\t5'/>",
    b"<a x='\r\r\n\n\r'/>",
    b"<a\r\nx='1'\ry='2'\n/\r>",
    b"<a\r\nx='1'\ry='2'\n/>",
    b"<a>&#13;\n\r&#10;</a>",
    b"<a><![CDATA[x\r\ny\rz\r]]></a>",
    b"<a><!--x\r\ny\rz\r--></a>",
    b"<a><?p x\r\ny\rz\r?></a>",
    b"<a><?p\r\nx?></a>",
    b"<?xml version='1.0'?>\r\n<!DOCTYPE\r\na\rSYSTEM\r\n'x'\r\n>\r<a\r\n/>\r",
    b"<a></a\r\n>",
    b"<a>\0</a>",
    b"<a/>\0",
    b"\0<a/>",
    b"<a x='\0'/>",
    b"<a\0/>",
    b"<a>\x01</a>",
    b"<a>\x08</a>",
    b"<a>\x0b</a>",
    b"<a>\x0c</a>",
    b"<a>\x1b</a>",
    b"<a>\x1f</a>",
    b"<a>\x7f</a>",
    b"<a x='\x1f'/>",
    b"<a x='\x7f'/>",
    b"<a><!--\x01--></a>",
    b"<a><?p \x01?></a>",
    b"<a><![CDATA[\x01]]></a>",
    b"<a>\xc2\x80\xc2\x85\xc2\x9f\xe2\x80\xa8</a>",
    b"<a x='\xc2\x85\xe2\x80\xa8'/>",
    b"<a>\xc3</a>",
    b"<a>\xc3",
    b"<a>\xa9</a>",
    b"<a>\xc0\x80</a>",
    b"<a>\xc1\xbf</a>",
    b"<a>\xe0\x80\x80</a>",
    b"<a>\xe0\x9f\xbf</a>",
    b"<a>\xe0\xa0\x80</a>",
    b"<a>\xed\x9f\xbf</a>",
    b"<a>\xed\xa0\x80</a>",
    b"<a>\xed\xbf\xbf</a>",
    b"<a>\xee\x80\x80</a>",
    b"<a>\xef\xbf\xbd</a>",
    b"<a>\xef\xbf\xbe</a>",
    b"<a>\xef\xbf\xbf</a>",
    b"<a x='\xef\xbf\xbe'/>",
    b"<a><!--\xef\xbf\xbf--></a>",
    b"<a><?p \xef\xbf\xbf?></a>",
    b"<a><![CDATA[\xef\xbf\xbe]]></a>",
    b"<a\xef\xbf\xbe/>",
    b"<a>\xf0\x80\x80\x80</a>",
    b"<a>\xf0\x8f\xbf\xbf</a>",
    b"<a>\xf0\x90\x80\x80</a>",
    b"<a>\xf0\x9f\xbf\xbe</a>",
    b"<a>\xf0\x9f\xbf\xbf</a>",
    b"<a>\xf4\x8f\xbf\xbf</a>",
    b"<a>\xf4\x90\x80\x80</a>",
    b"<a>\xf5\x80\x80\x80</a>",
    b"<a>\xf8\x88\x80\x80\x80</a>",
    b"<a>\xfe</a>",
    b"<a>\xff</a>",
    b"<a x='\xff'/>",
    b"<a x='\xc3'/>",
    b"<a><!--\xff--></a>",
    b"<a><!--\xc3--></a>",
    b"<a><?p \xe2\x82?></a>",
    b"<a><![CDATA[\xe2\x82]]></a>",
    b"<a\xff/>",
    b"<a\xc3/>",
    b"<\xc3\xa9></\xc3\xa9>",
    b"<\xc3\xa9></\xc3\xa8>",
    b"<a \xc3='1'/>",
    b"<a></a\xff>",
    b"<!DOCTYPE a SYSTEM '\xff'><a/>",
    b"<!DOCTYPE a SYSTEM '\x01'><a/>",
    b"<!DOCTYPE a SYSTEM '\xef\xbf\xbf'><a/>",
    b"<!DOCTYPE \xc3\xa9 SYSTEM '\xc3\xa9'><a/>",
    b"\xff\xfe<\0a\0/\0>\0",
    b"\xfe\xff\0<\0a\0/\0>",
    b"<\0a\0/\0>\0",
    b"<?xml version='1.0' encoding='iso-8859-1'?><a>\xe9</a>",
    b"<?xml version='1.0' encoding='UTF-8'?><a>\xe9</a>",
]

_LONG = [
    b"<%s>x</%s>" % (b"n" * 100, b"n" * 100),
    b"<%s/>" % (b"p" * 70),
    b"<a %s='1' %sx='2'/>" % (b"n" * 65, b"n" * 65),
    b"<a x='%s'/>" % (b"v" * 150),
    b"<a x='%s&amp;%s'/>" % (b"v" * 63, b"v" * 64),
    b"<a>%s</a>" % (b"t" * 200),
    b"<a>%s&amp;%s&lt;</a>" % (b"t" * 64, b"t" * 64),
    b"<a>%s</a>" % ("é" * 100).encode(),
    b"<a><!--%s--></a>" % (b"c" * 130),
    b"<a><![CDATA[%s]]></a>" % (b"]" * 70),
    b"<a><?p %s?></a>" % (b"?" * 70),
    b"<a%s/>" % (b" " * 100),
    b"<a%sx='1'%s/>" % (b"\n" * 64, b"\t" * 63),
    b"<a>%s</a>" % (b"\n" * 128),
    b"<a>%s</a>" % (b"\r\n" * 64),
    b"<a>" * 20 + b"</a>" * 20,
    b"<a>" * 12 + b"x" + b"</a>" * 12,
    b"<a>" * 10 + b"</a>" * 9,
    b"<a>" * 9 + b"</a>" * 10,
    b"<a><b>x</b>" * 8 + b"</a>" * 8,
    b"<a>" + b"<b/>" * 40 + b"</a>",
    b"<a>" + b"<b>x</b>" * 20 + b"</a>",
    b"<a>" + b"<b x='1'/>\n" * 15 + b"</a>",
    b"<a %s/>" % b" ".join(b"x%d='%d'" % (n, n) for n in range(25)),
    b"<a %s/>" % b" ".join(b"xmlns:p%d='%d'" % (n, n) for n in range(12)),
    b"<a>" + b"x&amp;" * 30 + b"</a>",
    b"<a>" + b"x<!--c-->" * 15 + b"</a>",
    b"<a xmlns:p='u'>" + b"<p:b p:x='1'>t</p:b>" * 10 + b"</a>",
]

# What the mutations start from too: ordinary data, larger than the rest.
_ORDINARY = [
    b"""<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE dblp SYSTEM "dblp.dtd">\n<dblp>\n"""
    b"""<article key="j/x/A1" mdate="2002-01-03"><author>A. Bee</author><title>On &lt;X&gt; """
    b"""&amp; Y</title><year>1999</year></article>\n</dblp>\n""",
    b"""<order id="17" xmlns="urn:shop" xmlns:x="urn:extra"><item sku='a-1' n="2">Tea</item>\n"""
    b"""  <item sku='b-2' n="1" x:gift="yes">Pot &#x26; lid</item><!-- paid --></order>""",
    b"""<soap:Envelope xmlns:soap="urn:soap"><soap:Body><m:Get xmlns:m="urn:m"><m:Name>x</m:Name>"""
    b"""</m:Get></soap:Body></soap:Envelope>""",
    b"""<svg xmlns="urn:svg" width="10" height='20'><g id="a"><path d="M 0,0 L 1,1 z"/></g>"""
    b"""<style><![CDATA[ a > b { x: "y" } ]]></style></svg>""",
    "<plays>\r\n\t<line n='1'>Ça ira — “oui”, dit-il…</line>\r\n\t<line n='2'>日本語</line>"
    "\r\n</plays>".encode(),
]

DOCUMENTS: list[bytes] = [
    *(line.encode() for line in _NAMESPACES + _ATTRIBUTES + _CONTENT + _PROLOGS),
    *_BYTES,
    *_LONG,
    *_ORDINARY,
]
