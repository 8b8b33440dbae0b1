"""Answer with a saved program, in a process of its own.

    python -m tests.matching.automaton.answer_saved PROGRAM [CACHE]

Prints the answers, and how many states were known before and after.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tamis.matching.engines.automaton import open_automaton
from tamis.matching.engines.automaton.layout import COUNT
from tamis.matching.engines.automaton.save import load_cache, load_program
from tests.matching.automaton.mutated_programs import said, sample


def main() -> None:
    """Answer what the sample asks."""
    saved = load_program(Path(sys.argv[1]))
    cache = load_cache(Path(sys.argv[2]), saved) if len(sys.argv) > 2 else None
    automaton = open_automaton(saved.program, 1 << 28, cache)
    before = int(automaton.cache.states.counts[COUNT])
    answers = said(automaton, sample())
    print(json.dumps([answers, before, int(automaton.cache.states.counts[COUNT])]))


if __name__ == "__main__":
    main()
