"""Ask every engine and every oracle one question again.

python -m tests.matching.replay SUBSCRIPTION DOCUMENT [PREFIX=URI…]
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

from lxml import etree

import tamis
from tamis.errors import EngineRefused
from tamis.matching.planner import ENGINES
from tests.oracles import elementpath_true, lxml_xpath


def command(subscription: str, document: str, namespaces: Mapping[str, str]) -> str:
    """The command line that replays a question."""
    declared = [f"{prefix}={uri}" for prefix, uri in namespaces.items()]
    return shlex.join(["python", "-m", "tests.matching.replay", subscription, document, *declared])


def answers(
    subscription: str, document: str, namespaces: Mapping[str, str]
) -> dict[str, bool | None]:
    """What each engine and oracle says; None where an engine refuses, or an oracle cannot say."""
    found: dict[str, bool | None] = {}
    given = tamis.Subscriptions({"s": subscription}, namespaces=namespaces)
    for engine in ENGINES:
        try:
            found[engine.name] = bool(tamis.compile(given, engine=engine.name).match(document))
        except EngineRefused:
            found[engine.name] = None
    tree = etree.fromstring(document.encode()).getroottree()
    found["lxml"] = lxml_xpath(subscription, namespaces)(tree)
    found["elementpath"] = elementpath_true(subscription, namespaces, tree)
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
