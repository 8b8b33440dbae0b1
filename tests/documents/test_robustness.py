"""The adversarial and broken documents of the corpora: an answer or an error, soon."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

import tamis
from tests.support.corpora import ROOT
from tests.support.parsing import batch_of

FILES = sorted(
    path
    for folder, pattern in (("robustness", "**/*"), ("blast", "broken*.xml"))
    for path in (ROOT / folder).glob(pattern)
    if path.is_file()
)
GOOD = b"<good><x a='1'>text</x></good>"
SUBSCRIPTIONS = {
    "good": "/good/x[@a = 1][. = 'text']",
    "long": "//text()[string-length(.) > 10]",
    "attributes": "//@*[string-length(.) > 3]",
    "absent": "not(//nothing)",
    "nodes": "//node()[name() = 'x']",
}

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not FILES, reason=f"the corpora are not there: {ROOT}"),
]


@pytest.fixture(scope="module")
def matcher() -> tamis.CompiledMatcher:
    return tamis.compile(SUBSCRIPTIONS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file(path: Path, matcher: tamis.CompiledMatcher) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    first, match, last = matcher.match_many([GOOD, path, GOOD])
    assert time.process_time() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
    assert list(first) == list(last) == ["good", "absent", "nodes"]
    if match.error is None:
        assert "absent" in match
    else:
        assert match.error.line >= 1
        assert match.error.column >= 1
        assert str(match.error).startswith(f"line {match.error.line}, column ")


def test_all_together(matcher: tamis.CompiledMatcher) -> None:
    """In one batch each gives what it gives alone."""
    together = [str(match.error or list(match)) for match in matcher.match_many(FILES)]
    alone = [str(m.error or list(m)) for path in FILES for m in matcher.match_many([path])]
    assert together == alone


def test_what_is_bad_is_refused() -> None:
    """The canary: were all of them answered, or none, the tests above would show nothing."""
    found = {path.name: batch_of(path)[1].get(0) for path in FILES}
    codes = {name: error and error.code for name, error in found.items()}
    bombs = "quadratic.xml lol_classic.xml lol_ig_content.xml lol_ig_attr.xml lol_long_value.xml"
    broken = "cyclic.xml undeclared_namespace.xml rss_empty_document.xml broken3.xml broken5.xml"
    good = "simple.xml simple-ns.xml dtd.xml good.xml external_file.xml gml_point.xml"
    assert {codes[name] for name in bombs.split()} == {"document-limit"}
    assert {codes[name] for name in broken.split()} == {"document-malformed"}
    assert {codes[name] for name in good.split()} == {None}
