"""Real documents: the W3C's use cases that the language has, and paths of DTDs, against Saxon."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tamis_workload as workload
from tamis.schema.reader import read_graph
from tamis.transform.transformer import Transformer
from tests.support.corpora import ROOT, corpus
from tests.support.saxon import canonical, transformed
from tests.transform.test_relative import check

pytestmark = pytest.mark.corpora

# From XML Query Use Cases (W3C, 23 March 2007), with the document as the context, and what the
# language has not (let, functions, several variables) left out.
USE_CASES = [
    ("bib", '<bib>{ for $b in /bib/book where $b/publisher = "Addison-Wesley" and $b/@year > 1991 '
     'return <book year="{ $b/@year }">{ $b/title }</book> }</bib>'),  # XMP Q1
    ("bib", "<results>{ for $b in /bib/book return <result>{ $b/title }{ $b/author }</result> }"
     "</results>"),  # XMP Q3
    ("bib", "<bib>{ for $b in //book where count($b/author) > 0 return <book>{ $b/title }"
     "{ $b/author[position() <= 2] }</book> }</bib>".replace("[position() <= 2]", "")),  # XMP Q6
    ("bib", '<bib>{ for $b in //book where $b/publisher = "Addison-Wesley" and $b/@year > 1991 '
     "order by $b/title return <book>{ $b/@year }{ $b/title }</book> }</bib>"),  # XMP Q7
    ("bib", '<r>{ for $b in //book where contains($b/title, "Web") return $b }</r>'),  # XMP Q8
    ("books", '<results>{ for $t in //title where contains($t/text(), "e") return $t }'
     "</results>"),  # XMP Q9
    ("bib", "<bib>{ for $b in //book[author] return <book>{ $b/title }{ $b/author }</book> }"
     "</bib>"),  # XMP Q11
    ("bib", "<bib>{ for $b in //book[editor] return <reference>{ $b/title }"
     "{ $b/editor/affiliation }</reference> }</bib>"),  # XMP Q11
    ("book", "<figlist>{ for $f in //figure return <figure>{ $f/@* }{ $f/title }</figure> }"
     "</figlist>"),  # TREE Q2
    ("book", '<section_count>{ for $b in /book return count($b/section) }</section_count>'),
    ("book", "<section_list>{ for $s in //section return <section title=\"{ $s/title }\" "
     'figcount="{ count($s/figure) }"/> }</section_list>'),  # TREE Q5
    ("book", "<toc>{ for $s in /book/section return <section>{ $s/@* }{ $s/title }"
     "{ $s/section/title }</section> }</toc>"),  # TREE Q6
    ("report1", '<r>{ for $s in //section[section.title = "Procedure"] return '
     "($s//incision)[2]/instrument }</r>".replace("($s//incision)[2]", "$s//incision")),  # SEQ Q1
    ("report1", "<r>{ for $s in //section where $s//anesthesia return $s//action }</r>"),
    ("string", '<r>{ for $n in //news_item/title[contains(., "Foobar Corporation")] return $n }'
     "</r>"),  # STRING Q1
    ("items", '<result>{ for $i in //item_tuple where $i/start_date <= "1999-01-31" or '
     'contains($i/description, "Bicycle") order by $i/itemno return <item_tuple>{ $i/itemno }'
     "{ $i/description }</item_tuple> }</result>".replace('$i/start_date <= "1999-01-31" or ', "")),
    ("users", "<r>{ for $u in //user_tuple where $u/rating = 'B' return <u>{ $u/name/text() }"
     "</u> }</r>"),
    ("sgml", '<r>{ for $s in //section[intro] return <s>{ $s/@*, $s/title, $s/intro//xref }</s> }'
     "</r>"),  # SGML
]  # fmt: skip


@pytest.mark.parametrize(("name", "query"), USE_CASES)
def test_use_cases(name: str, query: str) -> None:
    if not ROOT.is_dir():
        pytest.skip(f"the real documents are not at {ROOT}")
    document = without_doctype(ROOT / "usecases" / f"{name}.xml")
    (message,) = Transformer({"q": query}).transform(document)
    assert canonical(message.text) == canonical(transformed(query, document))


@pytest.mark.parametrize(
    ("name", "dtd", "root"),
    [
        ("usecases", "usecases/book.dtd", "book"),
        ("shakespeare", "shakespeare/play.dtd", "PLAY"),
        ("mondial", "mondial/mondial.dtd", "mondial"),
        ("docutils", "docutils/docutils.dtd", "document"),
        ("blast", "blast/NCBI_BlastOutput.dtd", "BlastOutput"),
    ],
)
def test_paths_of_dtds(name: str, dtd: str, root: str) -> None:
    """The messages are those of Saxon, and the nodes of both strategies the same."""
    paths = [path for path in corpus(name) if path.stat().st_size < 2_000_000][:6]
    graph = read_graph(ROOT / dtd, (), (root,))
    queries: list[str] = []
    for depth in (2, 3, 4):
        options = workload.TransformationOptions(
            binding_depth=depth, predicates=0, returns=2, descendant=0.4
        )
        drawn = workload.transformations_from_dtd(graph, 12, options=options, seed=depth)
        queries += map(with_condition, drawn, range(12))
    transformer = Transformer(dict(enumerate(queries)))
    made = 0
    for path in paths:
        document = without_doctype(path)
        (messages,) = transformer.transform_many([document])
        if messages.error is not None:  # some of BLAST's are broken
            continue
        found = {message.subscription: message.text for message in messages}
        for number in list(found)[:10]:
            expected = transformed(queries[int(number)], document)
            assert canonical(found[number]) == canonical(expected), queries[int(number)]
        made += len(found)
        check(queries, document)
    assert made > 20 or name == "usecases"


def with_condition(query: str, number: int) -> str:
    """A drawn transformation, of which every third asks that something is in the bound node."""
    returned = re.findall(r"\{ (\$b[^ ]*) \}", query)
    return query.replace("return", f"where {returned[0]} return") if number % 3 == 0 else query


def without_doctype(path: Path) -> str:
    """A document; Saxon would look for its DTD."""
    data = path.read_bytes()
    declared = re.match(rb"""<\\?xml[^>]*encoding=["']([A-Za-z0-9-]+)""", data)
    text = data.decode(declared[1].decode() if declared else "utf-8-sig")
    text = re.sub(r"^<\?xml[^>]*\?>", "", text.lstrip("\ufeff"))
    return re.sub(r"<!DOCTYPE[^\[>]*(\[[^\]]*\]\s*)?>", "", text, count=1)
