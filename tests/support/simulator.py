"""What the programs share that run kernels in Numba's simulator of a GPU."""

from __future__ import annotations

import os
import random
import sys


def run_on_one_core() -> None:
    """Run this process on one core, with short turns for its threads.

    The simulator starts a thread for each of a GPU's, and one thread polls the others. Only the
    thread that has the GIL runs. To hand the GIL to another core took four times as long as the
    kernels.
    """
    if hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, [random.choice(sorted(os.sched_getaffinity(0)))])
    sys.setswitchinterval(1e-5)
