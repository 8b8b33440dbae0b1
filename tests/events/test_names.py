"""The names that the package offers."""

from __future__ import annotations

import tamis.events


def test_every_name_is_there() -> None:
    for name in tamis.events.__all__:
        assert getattr(tamis.events, name).__name__ == name
