"""Java and Spark, found or missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from tamis.spark.session import find_java

JAVA = """#!/bin/sh
echo '    java.home = {home}' >&2
echo '    java.specification.version = {version}' >&2
exit {status}
"""


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for Javas, and no other to be found."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("TAMIS_JVM_DIRS", str(tmp_path))
    return tmp_path


def fake_java(folder: Path, version: str, status: int = 0) -> Path:
    """Makes a Java that only says what it is."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.format(home=folder, version=version, status=status))
    java.chmod(0o755)
    return folder


def test_java_is_found_where_it_may_be(fakes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = fake_java(fakes / "java-21", "21")
    assert find_java() == str(installed)
    on_path = fake_java(fakes / "path" / "java", "17")
    monkeypatch.setenv("PATH", f"{on_path}/bin")
    assert find_java() == str(on_path)
    named = fake_java(fakes / "named" / "java", "25")
    monkeypatch.setenv("JAVA_HOME", str(named))
    assert find_java() == str(named)


def test_javas_that_spark_cannot_use_are_passed_over(
    fakes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(fakes / "a-java-8", "1.8")
    fake_java(fakes / "b-java-11", "11")
    fake_java(fakes / "c-trimmed-17", "17", status=1)
    monkeypatch.setenv("JAVA_HOME", str(fakes / "nowhere"))
    with pytest.raises(tamis.UsageError, match="Spark needs Java 17 or newer, and none was found"):
        find_java()
    usable = fake_java(fakes / "d-java-17", "17")
    assert find_java() == str(usable)


def test_without_pyspark_the_extra_is_named() -> None:
    code = "import sys; sys.modules['pyspark'] = None; import tamis.spark"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ
    )
    assert "MissingExtra: this needs pyspark, which is not installed: pip install" in done.stderr


def test_the_client_of_connect_is_enough_to_import() -> None:
    """As it is without Py4J and all that needs it; start_spark() then says so."""
    code = """
import sys
sys.modules["py4j"] = sys.modules["pyspark.core"] = None
import tamis.core.errors, tamis.spark
try:
    with tamis.spark.start_spark(): pass
except tamis.core.errors.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert b"this needs pyspark" in done.stdout, done.stderr
