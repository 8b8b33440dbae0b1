"""Interned names: dense and stable, those of documents forgotten with their batch."""

from __future__ import annotations

import random
import threading

import tamis
from tamis.documents.parser import parse
from tamis.documents.source import Source
from tamis.documents.vocabulary import EVERYTHING, UNKNOWN, Vocabulary


def test_ids_are_dense_and_stable() -> None:
    vocabulary = Vocabulary()
    pairs = [("", "a"), ("u", "a"), ("", "b"), ("", "a"), ("a", ""), ("u", "a")]
    assert [vocabulary.add(*pair) for pair in pairs] == [0, 1, 2, 0, 3, 1]
    assert [vocabulary.find(*pair) for pair in pairs] == [0, 1, 2, 0, 3, 1]
    assert [vocabulary.expanded(id) for id in range(4)] == [pairs[i] for i in (0, 1, 2, 4)]
    assert len(vocabulary) == 4


def test_finding_adds_nothing() -> None:
    vocabulary = Vocabulary()
    assert vocabulary.find("", "a") == UNKNOWN
    assert len(vocabulary) == 0


def test_prefixes_have_their_own_numbers() -> None:
    vocabulary = Vocabulary()
    ids = vocabulary.add("", "p"), vocabulary.add_prefix("q"), vocabulary.add_prefix("p")
    assert ids == (0, 0, 1)
    assert vocabulary.add_prefix("q") == 0
    assert (vocabulary.prefix(0), vocabulary.prefix(1)) == ("q", "p")
    assert len(vocabulary) == 1


def test_a_fork_grows_by_itself() -> None:
    names = Vocabulary()
    names.add("", "a")
    names.add_prefix("p")
    first, second = names.fork(), names.fork()
    assert [first.add("", name) for name in "abc"] == [0, 1, 2]
    assert [second.add("", name) for name in "cba"] == [1, 2, 0]
    assert (first.add_prefix("q"), second.prefix(0)) == (1, "p")
    assert (len(names), len(first), len(second)) == (1, 3, 3)
    assert names.find("", "b") == UNKNOWN


def test_names_of_documents_are_forgotten() -> None:
    """Whatever the names of the documents, a matcher's own vocabulary does not grow."""
    names = Vocabulary()
    names.add("", "known")
    for number in range(3):
        fork = names.fork()
        document = f"<n{number} a{number}=''><known/><?pi{number}?></n{number}>".encode()
        batch, _ = parse([Source(document)], fork, EVERYTHING, tamis.Limits())
        assert batch.tags.tolist()[1] == 0
        assert len(fork) == 4
    assert len(names) == 1


def test_a_matcher_shared_by_threads() -> None:
    """Documents with ever new names, matched by threads at once, do not disturb each other."""
    matcher = tamis.compile({number: f"//n{number}[@a{number}]" for number in range(50)})
    wrong: list[tuple[int, list[object]]] = []

    def work(seed: int) -> None:
        for number in random.Random(seed).sample(range(50), 50):
            document = f"<x{seed}x{number}><n{number} a{number}=''/></x{seed}x{number}>"
            if list(matcher.match(document)) != [number]:
                wrong.append((number, list(matcher.match(document))))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
