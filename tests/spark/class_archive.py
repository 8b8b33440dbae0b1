"""Makes Spark's JVM load its classes, for an archive of them: see ``scripts/test-tiers``.

Half of the time that Spark takes to start goes into twenty thousand classes, and every test of a
command starts it anew.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tamis.spark import match_files, run, start_spark


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, start_spark("local[2]") as spark:
        document = Path(folder, "1.xml")
        document.write_text("<a/>")
        run(spark, {"x": "//a"}, document, Path(folder, "out"))
        match_files(spark, document, {"x": "//a"}).collect()


if __name__ == "__main__":
    main()
