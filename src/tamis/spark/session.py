"""A Spark of one's own that needs no configuration and stays quiet."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import glob
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.util import is_remote_only

import tamis
from tamis.core.errors import MissingExtra, UsageError

JAVA_VERSION_MIN = 17

# What a worker has. Workers must not need Tamis to read this function, so it is not one of Tamis's.
_PROBE = """
def probe(batches):
    import os
    import pyarrow
    for batch in batches:
        try:
            import tamis
            found = [tamis.__version__, os.path.exists(tamis.__file__)]
        except ImportError as error:
            found = [str(error), None]
        yield pyarrow.RecordBatch.from_pylist([dict(zip(["said", "is_file"], found))])
"""
_SHIP = (
    "send an environment with the job (--archives) or install it there: see 'On a cluster' in "
    "docs/spark.md"
)
_checked: set[str] = set()
"""The applications whose workers have this Tamis."""


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark raises when it cannot do what it is asked."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415

    return Py4JError, PySparkException


@contextmanager
def start_spark(
    master: str | None = None, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Start Spark, and stop it at the end of the ``with`` block.

    Finds Java, has the workers use this Python, and shows Spark's progress bar on terminals only.
    Where Spark runs here it is otherwise silent, since what goes wrong is raised; on a cluster it
    warns. What ``conf``, ``PYSPARK_PYTHON`` and ``SPARK_LOCAL_IP`` say is kept. Where Spark runs
    already, as in notebooks, this is not needed: Tamis takes any session.

    Args:
        master: ``local[*]``, which is this machine, or the URL of a cluster. By default what
            ``spark-submit`` was told, if that runs this program; else this machine.
        conf: properties of Spark.

    Raises:
        MissingExtra: this is only the client of Spark Connect.
        UsageError: there is no Java for it, or Spark does not start.
    """
    if is_remote_only():
        raise MissingExtra("spark", "pyspark.core")
    given = dict(conf or {})
    os.environ["JAVA_HOME"] = find_java()
    os.environ.setdefault("PYSPARK_PYTHON", given.get("spark.pyspark.python", sys.executable))
    if master is None and "PYSPARK_GATEWAY_PORT" not in os.environ:  # as spark-submit sets it
        master = "local[*]"
    with tempfile.TemporaryDirectory(prefix="tamis-spark-") as scratch, _quiet_py4j():
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        settings = {
            "spark.app.name": "tamis",
            "spark.log.level": "WARN",
            "spark.sql.warehouse.dir": scratch,  # else a folder where the user happens to be
            "spark.ui.showConsoleProgress": str(on_terminal).lower(),
        }
        if master is not None:
            settings["spark.master"] = master
        if master is not None and master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            settings |= {"spark.ui.enabled": "false", "spark.log.level": "FATAL"}
        spark = _start(settings | given)
        try:
            yield spark
        finally:
            with suppress(Exception):  # it may have died
                spark.stop()


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect, without a JVM."""
    return hasattr(spark, "session_id")


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Have the pages of Spark's UI say what a job does. A client of Spark Connect cannot."""
    if is_remote(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(text)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", before)  # type: ignore[arg-type]


def check_workers(spark: SparkSession) -> None:
    """See that the workers have this Tamis; asked of one of them, once in each application.

    Raises:
        UsageError: they have none, or another version, or one in a zip file, or do not start.
    """
    session: Any = spark
    is_client = is_remote(spark)
    application = session.session_id if is_client else spark.sparkContext.applicationId
    if application in _checked:
        return
    if not is_client:
        context = spark.sparkContext
        sent = context.getConf().get("spark.submit.pyFiles", "") or ""
        if any(os.path.basename(name).startswith("tamis") for name in sent.split(",")):
            raise UsageError(f"--py-files cannot bring Tamis, which has native code: {_SHIP}")
        if str(context.master).startswith("local") and context.pythonExec == sys.executable:
            _checked.add(application)
            return
    errors = (PySparkException,) if is_client else spark_errors()
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(_PROBE, names)
    one = spark.range(0, 1, 1, 1)
    try:
        ((said, is_file),) = one.mapInArrow(
            names["probe"], "said string, is_file boolean"
        ).collect()
    except errors as error:
        lines = str(error).partition("\n\tat ")[0].strip().splitlines()
        raise UsageError(f"Spark's workers do not start: {lines[-1]}") from None
    if is_file is None:
        raise UsageError(f"Tamis is not installed where Spark's workers run ({said}): {_SHIP}")
    if not is_file:
        raise UsageError(
            "Spark's workers have Tamis in a zip file (--py-files), which cannot hold its native "
            f"code: {_SHIP}"
        )
    if said != tamis.__version__:
        raise UsageError(
            f"Spark's workers have Tamis {said}, and this is {tamis.__version__}: {_SHIP}"
        )
    _checked.add(application)


def find_java() -> str:
    """The home of a Java that Spark can use: version 17 or newer, with all of its modules.

    Looks at ``JAVA_HOME``, at ``PATH`` and into ``/usr/lib/jvm``, or instead of the latter into the
    folders that ``TAMIS_JVM_DIRS`` names.

    Raises:
        UsageError: there is none.
    """
    candidates = [shutil.which("java")]
    if "JAVA_HOME" in os.environ:
        candidates.insert(0, os.path.join(os.environ["JAVA_HOME"], "bin", "java"))
    for folder in os.environ.get("TAMIS_JVM_DIRS", "/usr/lib/jvm").split():
        candidates += sorted(glob(os.path.join(folder, "*", "bin", "java")))
    for java in dict.fromkeys(filter(None, candidates)):
        home = _home_of(java)
        if home is not None:
            return home
    raise UsageError(
        f"Spark needs Java {JAVA_VERSION_MIN} or newer, and none was found: install it (on Debian "
        "or Ubuntu, the package openjdk-17-jre-headless) or set JAVA_HOME to it"
    )


def _home_of(java: str) -> str | None:
    """The home of a Java program, if Spark can use it."""
    command = [java, "--add-modules", "jdk.incubator.vector"]  # which trimmed ones lack
    command += ["-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    lines = (line.partition(" = ") for line in os.fsdecode(said).splitlines())
    properties = {name.strip(): value for name, _, value in lines}
    version = properties.get("java.specification.version", "")
    if not version.isdigit() or int(version) < JAVA_VERSION_MIN:  # Java 8 says 1.8
        return None
    return properties.get("java.home")


@contextmanager
def _quiet_py4j() -> Iterator[None]:
    """Keep Py4J from logging, as errors of nobody's, the interruptions that it raises anyway."""
    root = logging.getLogger()

    def is_from_elsewhere(record: logging.LogRecord) -> bool:
        return record.module != "java_gateway"

    root.addFilter(is_from_elsewhere)
    try:
        yield
    finally:
        root.removeFilter(is_from_elsewhere)


def _start(settings: Mapping[str, str]) -> SparkSession:
    """Start a JVM, if this process has none, and Spark in it."""
    # Not at the top: who has only the client of Spark Connect has none of these.
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415

    conf = SparkConf().setAll(list(settings.items()))
    reasons: tuple[type[Exception], ...] = (*spark_errors(), ValueError)
    with _MessagesHeldBack() as said:
        try:
            gateway = SparkContext._gateway
            if gateway is None:
                gateway = launch_gateway(conf, {"stderr": said.pipe})  # type: ignore[no-untyped-call]
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
        except reasons as error:
            raise UsageError(f"Spark does not start: {said.reason(error)}") from None


class _MessagesHeldBack:
    """What a JVM writes to standard error: kept back inside the ``with`` block, then passed on.

    Spark greets everybody with half a dozen warnings that concern nobody, and no setting turns off
    the first of them.
    """

    def __init__(self) -> None:
        self._end, self.pipe = os.pipe()
        self._is_held = True
        self._held: list[bytes] = []

    def __enter__(self) -> _MessagesHeldBack:
        threading.Thread(target=self._pump, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.pipe)
        self._is_held = False

    def _pump(self) -> None:
        with open(self._end, "rb", buffering=0) as messages, suppress(OSError):
            while chunk := messages.read(1 << 16):
                if self._is_held:
                    self._held.append(chunk)
                else:
                    os.write(2, chunk)

    def reason(self, error: Exception) -> str:
        """What the JVM complained of, in a few lines; else what Python did."""
        said = b"".join(self._held).decode(errors="replace")
        # Not warnings, greetings and stack traces.
        others = ("WARNING: ", "Using Spark's", "Setting ", "To adjust", "\t", "    ")
        complaints = [line for line in said.splitlines() if not line.startswith(others)]
        complaints = [line for line in complaints if " WARN " not in line and " INFO " not in line]
        return "\n".join((complaints or str(error).splitlines())[:3])
