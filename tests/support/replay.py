"""Ask every engine and every oracle one question again.

python -m tests.support.replay SUBSCRIPTION DOCUMENT [PREFIX=URI…]
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from lxml import etree

import tamis
from tamis.core.errors import EngineRefused
from tests.support.engines import ENGINES
from tests.support.oracles import elementpath_true, lxml_xpath


def command(subscription: str, document: str, namespaces: Mapping[str, str]) -> str:
    """The command line that replays a question."""
    declared = [f"{prefix}={uri}" for prefix, uri in namespaces.items()]
    return shlex.join(["python", "-m", "tests.support.replay", subscription, document, *declared])


Answers = dict[str, bool | None]
"""What each engine and oracle says; None where an engine refuses, or an oracle cannot say."""


def answers(subscription: str, document: str, namespaces: Mapping[str, str]) -> Answers:
    """The answers for a document."""
    return answers_for_each(subscription, [document], namespaces)[0]


def answers_for_each(
    subscription: str, documents: Sequence[str], namespaces: Mapping[str, str]
) -> list[Answers]:
    """The answers for each of some documents, which are matched together."""
    found: list[Answers] = [{} for _ in documents]
    given = tamis.Subscriptions({"s": subscription}, namespaces=namespaces)
    for engine in ENGINES:
        said: Iterable[bool | None] = [None] * len(documents)
        with suppress(EngineRefused):
            said = map(bool, tamis.compile(given, engine=engine.name).match_many(documents))
        for each, answer in zip(found, said, strict=True):
            each[engine.name] = answer
    by_lxml = lxml_xpath(subscription, namespaces)
    for each, document in zip(found, documents, strict=True):
        tree = etree.fromstring(document.encode()).getroottree()
        each["lxml"] = by_lxml(tree)
        each["elementpath"] = elementpath_true(subscription, namespaces, tree)
    return found


def main() -> None:
    """Print the answers and the explanation."""
    subscription, document, *declared = sys.argv[1:]
    namespaces = dict(item.split("=", 1) for item in declared)
    for name, answer in answers(subscription, document, namespaces).items():
        print(f"{name:12} {answer}")
    given = tamis.Subscriptions({"s": subscription}, namespaces=namespaces)
    print(tamis.compile(given).explain(document, "s"))


if __name__ == "__main__":
    main()
