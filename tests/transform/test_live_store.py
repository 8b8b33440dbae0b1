"""``Transformer.open``: documents are transformed by subscriptions that a folder keeps."""

from pathlib import Path

import pytest

import tamis
from tamis.core.errors import UsageError

QUERY = "<r>{ for $b in //p:book return $b/p:title }</r>"
DOCUMENT = "<bib xmlns='urn:p'><book><title>T</title></book></bib>"
DTD = "<!ELEMENT bib (book*)> <!ELEMENT book (title)> <!ELEMENT title (#PCDATA)>"


def test_a_folder_keeps_settings_and_subscriptions(tmp_path: Path) -> None:
    with tamis.Transformer.open(tmp_path, namespaces={"p": "urn:p"}) as live:
        live.add_many({"x": QUERY, 1: "<n>{ for $b in //p:bib return count($b/p:book) }</n>"})
        live.compact()
        live.add("y", QUERY, durable=True)
        live.remove(1)
    with tamis.Transformer.open(tmp_path) as live:
        assert live.ids == ("x", "y")
        expected = "<r><title xmlns='urn:p'>T</title></r>"
        assert [message.text for message in live.transform(DOCUMENT)] == [expected] * 2
        assert live.get("x") == QUERY
    with pytest.raises(UsageError, match="it was made with namespaces"):
        tamis.Transformer.open(tmp_path, namespaces={"p": "urn:q"})


def test_a_dtd_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "bib.dtd"
    file.write_text(DTD)
    given = {"dtd": file, "root": "bib", "strategy": "path-sharing-fw"}
    query = "<r>{ for $b in /bib/book return $b/title }</r>"
    with tamis.Transformer.open(tmp_path / "store", **given) as live:
        live.add("x", query)
    with tamis.Transformer.open(tmp_path / "store", **given) as live:
        assert [m.text for m in live.transform("<bib><book><title>T</title></book></bib>")] == [
            "<r><title>T</title></r>"
        ]
        assert "path-sharing-fw" in live.explain("x")


def test_what_was_read_with_other_namespaces_is_kept_as_it_was_read(tmp_path: Path) -> None:
    from tamis.language.flwr import parse_transformation  # noqa: PLC0415

    read = parse_transformation(QUERY, {"p": "urn:p"})
    with tamis.Transformer.open(tmp_path) as live, pytest.raises(UsageError, match="as text"):
        live.add("x", read)
    with tamis.Transformer.open(tmp_path) as live:
        assert live.ids == ()


def test_a_default_namespace_changes_what_was_read(tmp_path: Path) -> None:
    from tamis.language.flwr import parse_transformation  # noqa: PLC0415

    given = {"namespaces": {"p": "u"}, "default_namespace": "d"}
    read = parse_transformation("<r>{ for $b in //p:a return $b/c }</r>", {"p": "u"})
    with tamis.Transformer.open(tmp_path, **given) as live, pytest.raises(UsageError):
        live.add("a", read)


def test_ids_are_those_of_other_sets() -> None:
    for id in ("", "a\nb", "\ud83d"):
        with pytest.raises(tamis.BadSubscriptions):
            tamis.Transformer({id: "<r>{ for $b in //a return $b }</r>"})
