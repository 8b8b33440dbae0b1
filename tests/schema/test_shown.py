"""What is told and drawn of a graph schema."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tamis.core.errors import UsageError
from tamis.schema.describe import describe, dot, facts, svg
from tamis.schema.dtd import Child, ContentKind, Dtd, ElementType, Group, Occurs
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd

BOOK = """
    <!ELEMENT book (title, (author+ | editor), chapter*, index?, extra)>
    <!ELEMENT title (#PCDATA)>        <!ELEMENT author (name, name?)>
    <!ELEMENT editor (name)>          <!ELEMENT name (#PCDATA)>
    <!ELEMENT chapter (title, (chapter | para)*)>
    <!ELEMENT para (#PCDATA | note)*> <!ELEMENT note (para, link)>
    <!ELEMENT index EMPTY>            <!ELEMENT extra ANY>
    <!ELEMENT aside (aside)>
    <!ATTLIST book lang (en | fr) 'en' id ID #REQUIRED>
"""


def book() -> SchemaGraph:
    dtd = parse_dtd(BOOK)
    return SchemaGraph.of(Dtd(dtd.elements, missing=("names.mod",)), ["book"])


def test_the_description() -> None:
    assert describe(book()) == "\n".join(
        [
            "root: book",
            "elements: 11, of which 6 recursive",
            "depth: without end",
            "paths: 1,719 of at most 10 steps",
            "cycle: book extra",
            "cycle: chapter",
            "cycle: para note",
            "cycle: aside",
            "impossible, as they can never be complete: note aside",
            "not declared: link",
            "files that were not found: names.mod",
            "",
            "book",
            "├─ title: text",
            "├─ author*",
            "│  └─ name+: text",
            "├─ editor?",
            "│  └─ name: text",
            "├─ chapter*",
            "│  ├─ title: text",
            "│  ├─ chapter*: as in book",
            "│  └─ para*: text",
            "│     └─ note*",
            "│        ├─ para: as in chapter",
            "│        └─ link: not declared",
            "├─ index?: empty",
            "└─ extra: any element",
            "   └─ aside*",
            "      └─ aside: as in extra",
        ]
    )


def test_what_no_root_reaches_is_told() -> None:
    text = describe(SchemaGraph.of(parse_dtd("<!ELEMENT a EMPTY> <!ELEMENT b (a)>"), ["a"]))
    assert text == (
        "root: a\nelements: 2, of which none recursive\ndepth: 1\npaths: 1\n"
        "unreachable from a root: b\n\na: empty"
    )


def test_any_content_shows_what_content_models_do_not_lead_to() -> None:
    dtd = parse_dtd("<!ELEMENT a ANY> <!ELEMENT c (b)> <!ELEMENT b ANY> <!ELEMENT d EMPTY>")
    tree = describe(SchemaGraph.of(dtd, ["a"])).split("\n\n")[1]
    assert tree == "a: any element\n├─ c*\n│  └─ b: as in a\n├─ b*: any element\n└─ d*: empty"


def test_a_dtd_without_elements_is_told() -> None:
    assert describe(SchemaGraph.of(Dtd({}))).startswith("elements: 0, of which none recursive\n")


def test_long_lists_of_names_are_wrapped() -> None:
    size = 40
    ring = "".join(f"<!ELEMENT element-{n} (element-{(n + 1) % size})>" for n in range(size))
    lines = describe(SchemaGraph.of(parse_dtd(ring), ["element-0"])).splitlines()
    assert max(map(len, lines[:10])) <= 100
    assert " ".join(lines).count("element-39 ") > 0


def test_deep_outlines_are_cut() -> None:
    """Their indents would make them as long as the square of their depth."""
    size = 3_000
    chain = "".join(f"<!ELEMENT e{n} (e{n + 1})>" for n in range(size))
    text = describe(SchemaGraph.of(parse_dtd(f"{chain}<!ELEMENT e{size} EMPTY>")))
    assert text.endswith(" └─ …")
    assert f"depth: {size + 1}\npaths: 1,000 of at most 1,000 steps\n" in text
    assert len(text) < 10_000


def test_huge_numbers_of_paths_are_rounded() -> None:
    rungs = "".join(
        f"<!ELEMENT a{n} (b{n} | c{n})><!ELEMENT b{n} (a{n + 1})><!ELEMENT c{n} (a{n + 1})>"
        for n in range(400)
    )
    graph = SchemaGraph.of(parse_dtd(f"{rungs}<!ELEMENT a400 EMPTY>"))
    assert "\npaths: about 10^121\n" in describe(graph)
    assert facts(graph)["paths"] == {"count": 4 * 2**400 - 3, "steps": 801}


@pytest.mark.parametrize(
    ("model", "occurs"),
    [
        ("(a)", ""),
        ("(a?)", "?"),
        ("(a)?", "?"),
        ("(a+)?", "*"),
        ("(a?)+", "*"),
        ("(a, a)", "+"),
        ("(a, b, a?)", "+"),
        ("(a?, b, a?)", "*"),
        ("(a | b)", "?"),
        ("((a | b), a)", "+"),
        ("((a, b) | (b, a))", ""),
        ("((a+, b) | (b, a))", "+"),
        ("(a | (b, a, a))", "+"),
        ("(b | (b, a, a))", "*"),
        ("(a, b)+", "+"),
        ("(#PCDATA | a)*", "*"),
    ],
)
def test_how_often_a_child_occurs_in_all(model: str, occurs: str) -> None:
    dtd = parse_dtd(f"<!ELEMENT e {model}> <!ELEMENT a EMPTY> <!ELEMENT b EMPTY>")
    found = json.loads(json.dumps(facts(SchemaGraph.of(dtd))))
    assert found["elements"]["e"]["children"]["a"] == occurs
    mark = f' [label="{occurs}"]' if occurs else ""
    assert f'"e" -> "a"{mark}\n' in dot(SchemaGraph.of(dtd))


def test_the_facts() -> None:
    found = json.loads(json.dumps(facts(book())))
    elements = found.pop("elements")
    assert found == {
        "roots": ["book"],
        "depth": None,
        "paths": {"count": 1719, "steps": 10},
        "cycles": [["book", "extra"], ["chapter"], ["para", "note"], ["aside"]],
        "impossible": ["note", "aside"],
        "unreachable": [],
        "undeclared": ["link"],
        "missing": ["names.mod"],
    }
    assert list(elements) == list(parse_dtd(BOOK).elements)
    assert elements["book"] == {
        "kind": "children",
        "model": "(title, (author+ | editor), chapter*, index?, extra)",
        "children": {
            "title": "",
            "author": "*",
            "editor": "?",
            "chapter": "*",
            "index": "?",
            "extra": "",
        },
        "attributes": {
            "lang": {
                "kind": "enumeration",
                "presence": "default",
                "values": ["en", "fr"],
                "default": "en",
            },
            "id": {"kind": "ID", "presence": "#REQUIRED", "values": [], "default": None},
        },
        "height": 3,
    }
    assert elements["extra"] == {
        "kind": "ANY",
        "model": None,
        "children": {},
        "attributes": {},
        "height": 1,
    }


def test_the_drawing_in_words() -> None:
    graph = SchemaGraph.of(
        parse_dtd(
            "<!ELEMENT a (b, c*)> <!ELEMENT b (c, x)> <!ELEMENT c (b?, d)> <!ELEMENT d ANY>"
            "<!ELEMENT e (c)>"
        ),
        ["b"],
    )
    lines = [line.strip() for line in dot(graph).splitlines()]
    assert '"b" [peripheries=2, color=red, penwidth=2]' in lines
    assert '"d" [style="rounded,dashed", color=red, penwidth=2]' in lines
    assert '"b" -> "c" [color=red, penwidth=2]' in lines
    assert '"c" -> "b" [label="?", color=red, penwidth=2]' in lines
    assert not [line for line in lines if line.startswith('"d" ->') or '"x"' in line]


def names_drawn(picture: bytes) -> list[str]:
    namespace = "{http://www.w3.org/2000/svg}"
    groups = ET.fromstring(picture).iter(f"{namespace}g")
    return [
        "".join(g.find(f"{namespace}text").itertext()) for g in groups if g.get("class") == "node"
    ]


def test_graphviz_draws_all_elements() -> None:
    graph = book()
    assert sorted(names_drawn(svg(graph))) == sorted(graph.dtd.elements)


def test_graphviz_draws_names_that_no_dtd_has() -> None:
    names = ['a"b', "a\\N", "a\\", "é", "p:q", "-1", "node", "a b;]"]
    model = Group(tuple(Child(name) for name in names), is_choice=False, occurs=Occurs.ONE_OR_MORE)
    elements = {name: ElementType(name, ContentKind.CHILDREN, model) for name in names}
    assert names_drawn(svg(SchemaGraph.of(Dtd(elements)))) == names


def test_crowded_graphs_are_drawn_too() -> None:
    """In layers, this takes Graphviz minutes."""
    names = [f"e{n}" for n in range(60)]
    content = " | ".join(names)
    graph = SchemaGraph.of(parse_dtd("".join(f"<!ELEMENT {n} ({content})*>" for n in names)))
    assert sorted(names_drawn(svg(graph))) == sorted(names)


def test_without_graphviz_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="package graphviz"):
        svg(book())


def test_a_failure_of_graphviz_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho no fonts >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="Graphviz failed: no fonts"):
        svg(book())
