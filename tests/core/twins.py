"""What the intrinsics say of ``test_kernels.blocks``, compiled: ``python -m tests.core.twins``."""

from __future__ import annotations

import json

from numba import njit

from tamis.core.kernel import bits
from tamis.documents.tokenizer import vectors
from tests.core import test_kernels

_ONE = ("structure", "attribute", "line_ends", "returns", "name_ends", "near_name_ends", "word")


def main() -> None:
    for module, names in ((vectors, (*_ONE, "byte")), (bits, ("first", "ones", "last"))):
        for name in names:
            setattr(module, name, _one(getattr(module, name)))
    for name in ("value_ends", "found", "utf8_faults"):
        setattr(vectors, name, _two(getattr(vectors, name)))
    print(json.dumps(test_kernels.twins()))


def _one(intrinsic):
    return njit(lambda value: intrinsic(value))  # noqa: PLW0108 - it is no function of Python


def _two(intrinsic):
    return njit(lambda value, other: intrinsic(value, other))  # noqa: PLW0108


if __name__ == "__main__":
    main()
