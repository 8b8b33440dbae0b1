"""Unpacks the Maven POMs inside PySpark's own jars: some 390 real XML documents.

Usage: python examples/unpack_poms.py FOLDER

Each becomes FOLDER/<groupId>.<artifactId>.xml. Where several jars carry the same artifact, the
first of them keeps that name and the others add theirs: FOLDER/<groupId>.<artifactId>@<jar>.xml.
A second run does nothing, unless another version of PySpark was installed meanwhile.
"""

import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile


def find_jars() -> list[Path]:
    """Finds the jars of the installed PySpark, without importing it."""
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("PySpark is not installed: pip install 'tamis[spark]'")
    return sorted(Path(spec.submodule_search_locations[0], "jars").glob("*.jar"))


def read_poms(jar: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name (`<groupId>.<artifactId>`) and the bytes of each POM inside one jar."""
    with ZipFile(jar) as archive:
        for entry in archive.namelist():
            if entry.startswith("META-INF/maven/") and entry.endswith("/pom.xml"):
                _, _, group, artifact, _ = entry.split("/")
                yield f"{group}.{artifact}", archive.read(entry)


def unpack(folder: Path) -> int:
    """Writes the POMs of all jars into `folder` and returns how many there are."""
    written: set[str] = set()
    for jar in find_jars():
        for name, pom in read_poms(jar):
            unique = name if name not in written else f"{name}@{jar.stem}"
            written.add(unique)
            (folder / f"{unique}.xml").write_bytes(pom)
    return len(written)


def main() -> None:
    """Unpacks into the folder that the command line names, unless that was done before."""
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/unpack_poms.py FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    stamp = folder / ".unpacked-from"
    source = f"PySpark {version('pyspark')}"
    if stamp.exists():
        if stamp.read_text() == source:
            print(f"{folder}: the POMs of {source} are here already")
            return
        for stale in folder.glob("*.xml"):
            stale.unlink()
    stamp.write_text("unfinished")
    count = unpack(folder)
    stamp.write_text(source)
    print(f"{folder}: {count} POMs unpacked from the jars of {source}")


if __name__ == "__main__":
    main()
