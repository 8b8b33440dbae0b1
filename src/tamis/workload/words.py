"""Words: made-up ones, without end, and the real ones of bibliographies."""

from __future__ import annotations

_ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl cr dr fl gl gr pl pr sh sk sl sp st th tr"
_VOWELS = "a e i o u ai ea io ou"
_SYLLABLES = tuple(onset + vowel for vowel in _VOWELS.split() for onset in _ONSETS.split())


def pseudo_word(number: int) -> str:
    """A word for each number from 0, no two alike; the first are the shortest.

    >>> [pseudo_word(number) for number in (0, 1, 314, 315, 100_000)]
    ['ba', 'ca', 'trou', 'baba', 'bacahu']
    """
    syllables = []
    while True:
        number, syllable = divmod(number, len(_SYLLABLES))
        syllables.append(_SYLLABLES[syllable])
        if number == 0:
            return "".join(reversed(syllables))
        number -= 1
