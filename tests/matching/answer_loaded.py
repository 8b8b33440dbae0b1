"""Answer one document with a loaded matcher, in a process of its own.

python -m tests.matching.answer_loaded PROGRAM DOCUMENT
"""

import json
import sys

import tamis

if __name__ == "__main__":
    print(json.dumps(list(tamis.load(sys.argv[1]).match(sys.argv[2]))))
