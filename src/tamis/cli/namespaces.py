"""The namespaces of expressions: the options that declare them, and a warning about them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tamis.cli.console import warn
from tamis.cli.options import Option
from tamis.core.errors import UsageError

if TYPE_CHECKING:
    from tamis.matching.matcher import CompiledMatcher

NamespacesFile = Annotated[
    Path | None,
    Option(
        "--namespaces",
        metavar="FILE",
        help="The prefixes that expressions use: one prefix and its URI a line.",
    ),
]
DeclaredPrefixes = Annotated[
    list[str] | None,
    Option(
        "--ns",
        metavar="PREFIX=URI",
        help="Declare a prefix that expressions use. May be given several times.",
    ),
]
DefaultNamespace = Annotated[
    str | None,
    Option(
        "--default-ns",
        metavar="URI",
        help="The namespace of elements that expressions name without a prefix.",
        show_default="none",
    ),
]


class Namespaces(NamedTuple):
    """The namespaces that are declared for expressions."""

    file: Path | None = None
    prefixes: Sequence[str] | None = None
    default: str | None = None

    def read(self) -> tuple[dict[str, str], str | None]:
        """Prefix → URI, and the default namespace of elements.

        Raises:
            UsageError: the file cannot be read, or a declaration is none, or contradicts another.
        """
        from tamis.language.subscriptions import read_namespaces  # noqa: PLC0415 - keeps --help fast

        if self.file is not None and "=" in str(self.file) and not self.file.exists():
            raise UsageError("--namespaces takes a file: a single prefix is --ns PREFIX=URI")
        found = {} if self.file is None else read_namespaces(self.file)
        for declared in self.prefixes or ():
            prefix, equals, uri = declared.partition("=")
            if not equals or not uri:
                raise UsageError(f"--ns {declared}: expected PREFIX=URI")
            if not prefix:
                raise UsageError(f"--ns {declared}: a default namespace is --default-ns {uri}")
            if found.setdefault(prefix, uri) != uri:
                raise UsageError(
                    f"--ns {declared}: the prefix is declared before, as {found[prefix]}"
                )
        if self.default == "":
            raise UsageError("--default-ns: expected a URI")
        return found, self.default

    def declared(self) -> dict[str, str]:
        """Prefix → URI; the default namespace has the prefix ``""``.

        Raises:
            UsageError: as ``read``.
        """
        from tamis.language.subscriptions import declared_namespaces  # noqa: PLC0415

        return declared_namespaces(*self.read())


def warn_of_namespace(matcher: CompiledMatcher) -> None:
    """Warn if nothing was found because documents have the names in another namespace."""
    found = matcher.namespace_mismatch()
    if found is None:
        return
    test, namespace = found
    uri = shlex.quote(namespace)
    subscriptions = matcher.subscriptions
    prefixes = {uri: prefix for prefix, uri in subscriptions.namespaces.items()}
    where = f"in the namespace {test.namespace}" if test.namespace else "in none"
    if not namespace:
        advice = f"leave out --default-ns, or write Q{{}}{test.local}"
    elif namespace in prefixes:
        advice = f"write {prefixes[namespace]}:{test.local}"
    elif test.prefix is None:
        advice = f"give --ns p={uri} and write p:{test.local}"
        if subscriptions.default_namespace is None:
            advice = f"give --default-ns {uri}; or {advice}"
    elif "{" in test.prefix:
        advice = f"write Q{{{namespace}}}{test.local}"
    else:
        advice = f"give --ns {test.prefix}={uri}"
    if matcher.kept_in is not None:
        advice = advice.replace("give --", "give tamis compile --")
    has = f"in the namespace {namespace}" if namespace else "in no namespace"
    warn(
        f"nothing was found: the documents have '{test.local}' {has}, and "
        f"it was asked for {where}: {advice}"
    )
