"""Uses every kernel in one process, with every index checked: ``python -m tests.core.checked``.

With ``TAMIS_KERNELS=jit``. Numba compiles the kernels for some minutes, so one process does it for
all of these tests.
"""

from __future__ import annotations

from tests.core import every_kernel
from tests.documents import sample
from tests.matching.automaton import mutated_programs


def main() -> None:
    every_kernel.main()  # first, as it prints the kernels that it has not used
    sample.main()
    mutated_programs.main("--programs 2000 --caches 2000".split())


if __name__ == "__main__":
    main()
