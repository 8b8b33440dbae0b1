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


FIRST_NAMES = tuple(
    """Wei James Maria Jun Michael Anna Yang David Li Thomas Ahmed Elena Hiroshi Peter Ana Sanjay
    Christian Min Robert Fatima Jürgen José Ling Daniel Sofia Xin Andreas Priya Carlos Olga
    Kenji Martin Leila Paul Yan Stefan Ingrid Rajeev Laura Tao Mark Zoë François Nadia Hao Simon
    Ayşe Luca Mei Alexander Julia Kai Richard Samira Bo Antonio Eva Satoshi Björn Chen Marta
    Eric""".split()
)

LAST_NAMES = tuple(
    """Wang Müller Smith Garcia Zhang Kumar Johnson Li Tanaka Rossi Chen Silva Kim Schmidt Nguyen
    Brown Liu Singh Novák Fernández Jones Yang Sato Weber Petrov Huang Lee Dubois Kowalski Patel
    Zhao Miller Santos Fischer Suzuki Wu Ivanova Davis Martínez Zhou Jansen Wilson Hansen Xu Rao
    Meyer Sun Taylor Nakamura Costa Ma Olsen Anderson Gupta Zhu Wagner López Hu Moore Bianchi
    Guo Becker Popescu He Thompson Park Lin Hoffmann Gao Eriksson Martin Luo White Sharma
    Horváth Zheng Schäfer Clark Romero Liang Lewis Koch Xie Papadopoulos Tang Robinson Richter
    Walker Yamamoto Klein Deng Young Wolf Feng Haddad King Neumann Cao Wright Peng Schwarz Zeng
    Scott Torres Zimmermann Xiao Green Braun Tian Baker Krüger Dong Adams Hofmann Pan Nelson
    Hartmann Yuan Hill Lange Cai""".split()
)

TITLE_WORDS = tuple(
    """Data Systems Learning Networks Analysis Model Efficient Distributed Query Processing
    Parallel Algorithms Adaptive Design Dynamic Streaming Optimization Evaluation Web Semantic
    Framework Approach Information Neural Mining Detection Performance Automatic Control
    Software Graph Time Multiple Wireless Management Images Search Deep Structured Scalable
    Knowledge Language Computing Hardware Databases Recognition Real-Time Clustering
    Classification Secure Retrieval Robust Mobile Logic Filtering Documents Modeling
    Architecture Protocol Sensor Large Verification Interactive Programs Fast Sequential
    Estimation Patterns Memory Linear Matching Tracking Storage Complexity Services Approximate
    Transactions Video Schema Reasoning Cloud Visual Planning Discovery Trees Scheduling Routing
    Environments Integration Incremental Compression Recursive Publish-Subscribe Indexing
    Simulation Reliable Testing XML Event Constraints Fuzzy Bounds Prediction Cache Channels
    Synthesis Energy Agents Spatial Tolerance Temporal Privacy Embedded Automata Games
    Consistency Replication Markov Ontologies Extraction Requirements Segmentation Genetic
    Concurrent Proofs Decision Random Summarization Joins Views Semantics Objects Compilers
    Recovery Sampling Circuits Encryption Numerical Geometric Monitoring Broadcast Provenance
    Speculative Lattices Twigs""".split()
)

JOINING_WORDS = (
    " for ",
    " of ",
    " and ",
    " in ",
    " with ",
    " on ",
    ": ",
    " from ",
    " &amp; ",
    ", ",
)

_VENUES = (
    "CoRR|corr;IEEE Trans. Knowl. Data Eng.|tkde;Proc. VLDB Endow.|pvldb;SIGMOD|sigmod;"
    "ACM Trans. Database Syst.|tods;ICDE|icde;Theor. Comput. Sci.|tcs;Inf. Process. Lett.|ipl;"
    "Commun. ACM|cacm;VLDB J.|vldb;EDBT|edbt;J. ACM|jacm;WWW|www;Inf. Syst.|is;SIGIR|sigir;"
    "CIKM|cikm;IEEE Access|access;ICML|icml;Acta Inf.|acta;SIAM J. Comput.|siamcomp;DEBS|debs;"
    "KDD|kdd;Data Knowl. Eng.|dke;Softw. Pract. Exp.|spe;OSDI|osdi;PODS|pods;Comput. J.|cj;"
    "NSDI|nsdi;FPL|fpl;J. Syst. Archit.|jsa;Middleware|middleware;ISCA|isca;World Wide Web|w3;"
    "DATE|date;IEEE Micro|micro;PLDI|pldi;Sensors|sensors;SIGMOD Rec.|sigmodr;FCCM|fccm"
)
VENUES = tuple(tuple(venue.split("|")) for venue in _VENUES.split(";"))
"""The name of each, and the short one in keys."""
