"""``Transformer``: subscriptions that come and go, documents in error, limits."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.core.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocument,
    MessageError,
    MessageLimitError,
    SubscriptionIdError,
    UnsupportedExpression,
    UsageError,
)

BOOKS = "<bib><book k='1'><t>A</t></book><book k='2'><t>B</t><t>C</t></book></bib>"
TITLES = "<r>{ for $b in //book return <b>{ $b/t }</b> }</r>"
SECOND = "<r>{ for $b in //book[2] return $b/@k/../t }</r>"
COUNTS = "<r>{ for $b in //book where count($b/t) > 1 return <n>{ count($b/t) }</n> }</r>"


def texts(transformer: tamis.Transformer, document: str = BOOKS) -> dict[object, str]:
    return {found.subscription: found.text for found in transformer.transform(document)}


def test_subscriptions_come_and_go() -> None:
    transformer = tamis.Transformer({"t": TITLES})
    expected = {"t": "<r><b><t>A</t></b><b><t>B</t><t>C</t></b></r>"}
    assert texts(transformer) == expected
    transformer.add(7, COUNTS)  # answered by another strategy
    transformer.add("u", TITLES.replace("//book", "//book[@k = 2]"))
    more = {**expected, 7: "<r><n>2</n></r>", "u": "<r><b><t>B</t><t>C</t></b></r>"}
    assert texts(transformer) == more
    assert list(texts(transformer)) == ["t", 7, "u"]
    assert transformer.transform(BOOKS).subscriptions == ["t", 7, "u"]
    transformer.remove("t")
    transformer.remove(7)
    assert texts(transformer) == {"u": more["u"]}
    transformer.add("t", TITLES)
    assert list(texts(transformer)) == ["u", "t"]
    assert len(transformer) == 2
    assert (transformer.ids, list(transformer)) == (("u", "t"), ["u", "t"])
    assert "u" in transformer
    assert 7 not in transformer
    assert repr(transformer) == "<Transformer: 2 subscriptions, strategy auto>"
    with pytest.raises(SubscriptionIdError, match="there is no such subscription"):
        transformer.remove(7)
    with pytest.raises(SubscriptionIdError, match="the id is taken"):
        transformer.add("t", COUNTS)
    assert texts(transformer, "<a/>") == {}


def test_a_transformer_is_made_of_files_and_pairs(tmp_path: Path) -> None:
    (tmp_path / "t.xq").write_text(TITLES)
    (tmp_path / "c.xq").write_text(COUNTS)
    expected = texts(tamis.Transformer({"c": COUNTS, "t": TITLES}))
    for given in (tmp_path, [("c", COUNTS), ("t", TITLES)], iter([("c", COUNTS), ("t", TITLES)])):
        assert texts(tamis.Transformer(given)) == expected
    (tmp_path / "bad.xq").write_text("<r/>")
    with pytest.raises(tamis.BadSubscriptions) as caught:
        tamis.Transformer(tmp_path)
    assert [error.id for error in caught.value.errors] == ["bad"]


def test_all_bad_subscriptions_are_told() -> None:
    with pytest.raises(tamis.BadSubscriptions) as caught:
        tamis.Transformer({"a": "<r/>", "b": TITLES, "c": SECOND})
    assert [error.id for error in caught.value.errors] == ["a", "c"]


def test_strategies() -> None:
    for strategy in ("auto", "relative", "reference"):
        assert len(texts(tamis.Transformer({"t": TITLES}, strategy=strategy))) == 1
    with pytest.raises(UsageError, match="choose one of auto, reference, relative, path-sharing-f"):
        tamis.Transformer(strategy="fast")
    with pytest.raises(tamis.BadSubscriptions) as caught:
        tamis.Transformer({"c": COUNTS}, strategy="relative")
    assert isinstance(caught.value.errors[0], UnsupportedExpression)
    assert caught.value.errors[0].id == "c"


def test_documents_in_error_are_told_in_their_place(tmp_path: Path) -> None:
    path = tmp_path / "x.xml.gz"
    path.write_bytes(gzip.compress(BOOKS.encode()))
    documents = [BOOKS, "<a>", path, b"<bib/>", tmp_path / "none.xml", MalformedDocument("given")]
    found = list(tamis.Transformer({"t": TITLES}).transform_many(documents))
    assert [messages.error is None for messages in found] == [True, False, True, True, False, False]
    assert [len(messages) for messages in found if messages.error is None] == [1, 1, 0]
    with pytest.raises(DocumentError):
        len(found[1])
    with pytest.raises(DocumentError):
        tamis.Transformer({"t": TITLES}).transform("<a>")
    with pytest.raises(UsageError, match="give one to transform"):
        tamis.Transformer().transform_many(BOOKS)


def test_a_default_namespace_is_that_of_a_declaration() -> None:
    document = "<a xmlns='u'><b>1</b><b xmlns=''>2</b></a>"
    query = "<r>{ for $b in /a return <x>{ $b/b/text() }</x> }</r>"
    declared = f'declare default element namespace "u"; {query}'
    expected = {1: '<r xmlns="u"><x>1</x></r>'}
    assert texts(tamis.Transformer({1: declared}), document) == expected
    given = tamis.Transformer({1: query}, default_namespace="u")
    assert texts(given, document) == expected
    given.add(2, query.replace("<r>", "<r xmlns=''>"))
    given.add(3, f'declare default element namespace "v"; {query}')
    assert texts(given, document) == expected


def test_a_message_that_cannot_be_made_is_an_error_of_its_own() -> None:
    twice = "<r>{ for $b in /bib return <x>{ $b/book/@k }</x> }</r>"
    own = "<r>{ for $b in //book return <x k='0'>{ $b/@k }</x> }</r>"
    document = '<a xmlns:p="u" p:k="1" xml:lang="en"/>'
    for tag, name in (("x xmlns:q='u' q:k='2'", "p:k"), ("x xml:lang='de'", "xml:lang")):
        query = f"<r>{{ for $b in /a return <{tag}>{{ $b/@{name} }}</x> }}</r>"
        transformer = tamis.Transformer({1: query}, namespaces={"p": "u"})
        assert "copied into it has one, too" in str(transformer.transform(document)[0].error)
    found = tamis.Transformer({1: twice, 2: TITLES, 3: own}).transform(BOOKS)
    assert [message.error is None for message in found] == [False, True, False]
    with pytest.raises(MessageError, match="would have two attributes 'k'"):
        found[0].text  # noqa: B018 - it raises
    limits = tamis.Limits(message_bytes=44)
    for query in (TITLES, TITLES.replace("$b/t }", "$b/t, count($b/t) }")):
        found = tamis.Transformer({1: query, 2: COUNTS}, limits=limits).transform(BOOKS)
        assert isinstance(found[0].error, MessageLimitError)
        assert "message_bytes = 44" in str(found[0].error)
        assert found[1].text == "<r><n>2</n></r>"
    query = "<r>{ for $b in //book return <x>100% { $b }{ $b }</x> }</r>"
    (message,) = tamis.Transformer({1: query}).transform("<book/>")
    assert message.text == "<r><x>100% <book/><book/></x></r>"
    for size, is_made in ((len(message.text), True), (len(message.text) - 1, False)):
        transformer = tamis.Transformer({1: query}, limits=tamis.Limits(message_bytes=size))
        assert (transformer.transform("<book/>")[0].error is None) == is_made


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("queries", r"a pathlib.Path of a file, not str: .* pathlib.Path\('queries'\)"),
        ([TITLES], "a subscription is a pair of an id and a transformation, not '<r>"),
        ({"a": None}, "subscription 'a': a transformation is a str, not NoneType"),
        ({None: TITLES}, "an id is a str or an int, not None"),
        ({True: TITLES}, "an id is a str or an int, not True"),
    ],
)
def test_what_is_no_subscription(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tamis.Transformer(given)


def test_elements_in_each_other_take_no_memory() -> None:
    """Together they are 500 times as long as the document, however they are asked for."""
    limits = tamis.Limits(message_bytes=1_000_000)
    returned = ("{ $s//a }", "{ $s//a, count($s) }", "{ sum($s//a) }")
    queries = [f"<r>{{ for $s in /a return <m>{each}</m> }}</r>" for each in returned]
    queries.append("<r>{ for $s in /a return <m k='{ $s//a }'/> }</r>")
    queries.append("<r>{ for $s in //a order by $s return <m/> }</r>")
    transformer = tamis.Transformer(dict(enumerate(queries)), limits=limits)

    def errors(depth: int, size: int) -> list[str]:
        found = transformer.transform("<a>" * depth + "x" * size + "</a>" * depth)
        return [str(message.error) for message in found]

    assert errors(2, 10) == ["None"] * 5
    tracemalloc.start()
    try:
        found = errors(500, 200_000)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()
    longer = "longer than the limit message_bytes = 1,000,000"
    assert [error.endswith(longer) for error in found] == [True, True, False, True, True]
    assert found[4].startswith("the values that order the message")


def test_numbers_of_many_digits() -> None:
    document = f"<a><b>{'1' * 40}</b><b>0.{'0' * 30}1</b></a>"
    query = "<r>{ for $b in //b where $b > 1000 return <x>{ sum($b) }</x> }</r>"
    assert texts(tamis.Transformer({1: query}), document) == {
        1: "<r><x>1.1111111111111112E39</x></r>"
    }


def test_many_nested_bindings_are_no_exponential_work() -> None:
    deep = "<a>" * 200 + "<b/>" + "</a>" * 200
    query = (
        "<r>{ for $a in //a//a//a//a where $a//a//a//a//b return <x>{ count($a//a//b) }</x> }</r>"
    )
    (text,) = texts(tamis.Transformer({1: query}), deep).values()
    assert text.count("<x>1</x>") == 194


@pytest.mark.parametrize("strategy", ["relative", "reference"])
def test_quadratic_lists_have_a_limit(strategy: str) -> None:
    nested = "<a>" * 300 + "<b/>" * 300 + "</a>" * 300
    query = "<r>{ for $a in //a return <x>{ $a//b }</x> }</r>"
    limits = tamis.Limits(transformed_nodes=20_000)
    transformer = tamis.Transformer({1: query}, strategy=strategy, limits=limits)
    found = list(transformer.transform_many([nested, "<a><b/></a>"]))
    assert isinstance(found[0].error, DocumentLimitError)
    assert "transformed_nodes = 20,000" in str(found[0].error)
    assert [message.text for message in found[1]] == ["<r><x><b/></x></r>"]
    (message,) = tamis.Transformer({1: query}, strategy=strategy).transform(nested)
    assert message.text.count("<b/>") == 300 * 300


@pytest.mark.parametrize("strategy", ["relative", "reference", "plan-sharing", "path-sharing-f"])
def test_the_limit_of_lists_is_exact(strategy: str) -> None:
    document = "<a>" + "<b/>" * 1_000 + "</a>"
    query = "<r>{ for $a in /a return <x>{ $a/b }</x> }</r>"
    other = "<r>{ for $b in //b return <x/> }</r>"  # needs no lists, however many groups
    for allowed, is_found in ((1_000, True), (999, False)):
        limits = tamis.Limits(transformed_nodes=allowed)
        transformer = tamis.Transformer({1: query, 2: other}, strategy=strategy, limits=limits)
        (found,) = transformer.transform_many([document])
        assert (found.error is None) == is_found
    transformer.remove(1)
    assert texts(transformer, document) == {2: "<r>" + "<x/>" * 1_000 + "</r>"}


def test_what_was_removed_leaves_nothing_behind() -> None:
    transformer = tamis.Transformer({"t": TITLES, 2: COUNTS})
    expected = texts(transformer, BOOKS)
    attributes = "<r>{ for $b in //book return <x>{ count($b/@*) }</x> }</r>"
    for number in range(2_000):
        where = f"where $b/@n{number} > {number}"
        transformer.add("a", f"<r>{{ for $b in //book {where} return $b/t{number} }}</r>")
        transformer.add(
            "b", attributes if number % 2 else attributes.replace("@*", "t[contains(., 'A')]")
        )
        if number % 400 < 2:
            assert len(texts(transformer, BOOKS)) == 3
        transformer.remove("a")
        transformer.remove("b")
    transformer.add("a", attributes)
    for _ in range(300):
        transformer.remove("a")
        transformer.add("a", TITLES)
    transformer.remove("a")
    assert texts(transformer, BOOKS) == expected
    assert texts(transformer, BOOKS) == expected
    assert len(transformer.plans.projection.attributes.some or ()) < 300


def test_a_subscription_that_is_refused_asks_nothing_of_documents() -> None:
    transformer = tamis.Transformer({"t": TITLES}, strategy="plan-sharing")
    projection = transformer.plans.projection
    with pytest.raises(UnsupportedExpression):
        transformer.add(1, "<r>{ for $b in //book return $b/@secret }</r>")
    assert transformer.plans.projection == projection


def test_numbers_of_many_digits_are_read_whatever_asks_for_them() -> None:
    digits = [f"{number}.{'0' * 20}{number}" for number in range(1, 1_500)]
    document = "<a>" + "".join(f"<b k='{each}'><c>{each}</c></b>" for each in digits) + "</a>"
    queries = {
        number: f"<r>{{ for $b in //b[@k >= {number}] where $b/c < {number}.5 return $b/c }}</r>"
        for number in range(1, 1_500, 50)
    }
    expected = {number: f"<r><c>{digits[number - 1]}</c></r>" for number in queries}
    for strategy in ("relative", "plan-sharing", "path-sharing-f"):
        assert texts(tamis.Transformer(queries, strategy=strategy), document) == expected


def test_threads_share_a_transformer() -> None:
    transformer = tamis.Transformer({"t": TITLES, 2: COUNTS})
    documents = [BOOKS.replace("A", f"A{number}") for number in range(200)]

    def text(document: str) -> list[str]:
        return [message.text for message in transformer.transform(document)]

    expected = list(map(text, documents))
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(text, documents)) == expected


def test_messages_are_the_same_however_many_are_written_together() -> None:
    returned = ("$b", "<x k='{ $b/@k }'>{ $b/t/text() }</x>", "<x>{ $b/@k }{ count($b/t) }</x>")
    queries = {
        number: f"<r n='{number}'>{{ for $b in //b[@k >= {number % 50}]"
        f" return {returned[number % 3]} }}</r>"
        for number in range(3_000)
    }
    transformer = tamis.Transformer(queries)
    for size in (3, 300):  # the messages of the first fit together, but for their number
        inside = "".join(f"<b k='{k % 60}'><t>&lt;{k}</t></b>" for k in range(size))
        found = transformer.transform(f"<a>{inside}</a>")
        one_by_one = {
            number: found[number] for number in random.Random(size).sample(range(len(found)), 50)
        }
        every = list(found)
        assert [each.subscription for each in every] == found.subscriptions
        for number, message in one_by_one.items():
            assert every[number] == message
        for message in every[::97]:
            alone = tamis.Transformer({message.subscription: queries[message.subscription]})
            assert alone.transform(f"<a>{inside}</a>")[0] == message


def test_changes_are_seen_by_single_documents() -> None:
    transformer = tamis.Transformer({"t": TITLES})
    data = BOOKS.encode()
    expected = texts(transformer)
    for number in range(40):
        transformer.add(number, TITLES.replace("//book", f"//book[@k = {number}]"))
        renamed = data.replace(b"bib", b"bib%d" % number)
        for document in (data, renamed, data):
            found = {each.subscription: each.text for each in transformer.transform(document)}
            assert found["t"] == expected["t"]
            assert len(found) == 1 + (number > 0) + (number > 1)
    for number in range(40):
        transformer.remove(number)
    assert texts(transformer) == expected


def test_threads_share_the_messages_of_a_document() -> None:
    queries = {
        n: f"<r>{{ for $b in //b[@k > {n}] return <x>{{ $b }}</x> }}</r>" for n in range(400)
    }
    inside = "".join(f"<b k='{k}'>{k}</b>" for k in range(400))
    found = tamis.Transformer(queries).transform(f"<a>{inside}</a>")
    expected = [message.content for message in found]

    def read(turn: int) -> bool:
        order = random.Random(turn).sample(range(len(found)), len(found))
        return all(found[number].content == expected[number] for number in order)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(read, range(4)))


def test_one_message_is_no_work_for_all() -> None:
    """Neither those that are too long, nor the order of others, are made for one of them."""
    nested = "<a>" * 500 + "x" * 200_000 + "</a>" * 500
    flat = "".join(["<a>", *map("<b k='{}'/>".format, range(2_000)), "</a>"])
    for document, query in (
        (nested, "<r>{ for $s in /a return <m>{ $s//a }</m> }</r>"),
        (flat, "<r>{ for $b in //b order by $b/@k return $b/none }</r>"),
    ):
        limits = tamis.Limits(message_bytes=1 << 63)  # more than a kernel can count
        limits = tamis.Limits() if document is nested else limits
        found = tamis.Transformer(dict.fromkeys(range(300), query), limits=limits).transform(
            document
        )
        start = time.process_time()
        made = [found[number] for number in range(299, 279, -1)]
        assert time.process_time() - start < 2  # some hundredths; seconds, if all others were made
        assert len({message.content for message in made}) == 1
        assert {type(message.error) for message in made} == {type(list(found)[7].error)}
