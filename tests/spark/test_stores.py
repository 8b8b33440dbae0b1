"""Files in object stores, as Spark spells them: S3 of moto, and Azure's storage of Azurite."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import tamis
from tamis.core.errors import UnreadableDocument
from tamis.core.limits import DEFAULT_LIMITS
from tamis.spark import filesystems
from tamis.spark.answers import SplitReader
from tamis.spark.filesystems import opened
from tamis.spark.parquet import ParquetStore
from tamis.spark.splits import InputSplit, check_paths, list_files
from tests.spark.servers import connect_server, environment, started
from tests.support.postgres import HOST, free_port
from tests.support.running import COMMAND

ROOT = Path(__file__).parents[2]
# Of the emulator, whose account is public.
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
FILES = ["d=1/a.xml", "d=1/b c.xml", "d=2/x%41.xml", "d=2/é.xml"]
OTHERS = ["odd/a[1]*.xml", "odd/a1.xml", "d=2/notes.txt", "d=2/.hidden.xml", "d=2/below/c.xml"]
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AZURE_STORAGE_KEY": AZURE_KEY,
}
ESCAPED = ["d=1/a.xml", "d=1/b%20c.xml", "d=2/x%2541.xml", "d=2/é.xml"]


class Store(NamedTuple):
    """A folder of a store: ``uri``, with ``{scheme}``, and what follows the path in it."""

    uri: str
    options: str
    schemes: tuple[str, ...]
    settings: dict[str, str]

    def path(self, inside: str = "", scheme: str = "") -> str:
        folder = self.uri.format(scheme=scheme or self.schemes[0])
        return folder + inside + self.options


def fill(system: fs.FileSystem, bucket: str) -> None:
    system.create_dir(bucket)
    for name in [*FILES, *OTHERS]:
        with system.open_output_stream(f"{bucket}/in/{name}") as file:
            file.write(f"<a n='{name}'/>".encode())


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    port, log = free_port(), tmp_path_factory.mktemp("moto") / "log"
    server = str(Path(sys.executable).parent / "moto_server")
    with started(log, "Running on", server, "-H", HOST, "-p", str(port)):
        address = f"{HOST}:{port}"
        fill(
            fs.S3FileSystem(
                access_key="key",
                secret_key="secret",
                region="us-east-1",
                scheme="http",
                endpoint_override=address,
                allow_bucket_creation=True,
            ),
            "orders",
        )
        yield Store(
            "{scheme}://orders/in/", "", ("s3a", "s3", "s3n"),
            {**SETTINGS, "AWS_ENDPOINT_URL": f"http://{address}"},
        )  # fmt: skip


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    found = subprocess.run(
        [ROOT / "scripts" / "find-azurite"], capture_output=True, text=True, check=True
    )
    port, log = free_port(), tmp_path_factory.mktemp("azurite") / "log"
    options = ["--blobPort", str(port), "--inMemoryPersistence", "--skipApiVersionCheck"]
    with started(log, "successfully listens", found.stdout.strip(), *options):
        address = f"{HOST}:{port}"
        both = {f"{name}_storage_authority": address for name in ("blob", "dfs")}
        http = {f"{name}_storage_scheme": "http" for name in ("blob", "dfs")}
        account = "devstoreaccount1"
        fill(fs.AzureFileSystem(account, account_key=AZURE_KEY, **both, **http), "orders")
        query = "&".join(f"{name}={value}" for name, value in both.items())
        yield Store(
            f"{{scheme}}://orders@{account}.dfs.core.windows.net/in/",
            f"?enable_tls=false&{query}", ("abfss", "abfs", "wasbs"), SETTINGS,
        )  # fmt: skip


@pytest.fixture(params=["s3", "azure"])
def store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Store:
    found: Store = request.getfixturevalue(request.param)
    for name, value in found.settings.items():
        monkeypatch.setenv(name, value)
    filesystems._connected.cache_clear()
    return found


pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("d=1", 2),
        ("d=1/", 2),
        ("d=*", 4),
        ("d=*/", 4),
        ("d=?/*.xml", 4),
        ("d=[13]/*.xml", 2),
        ("d=1/b%20c.xml", 1),
        ("d=1/b c.xml", 1),
        ("d=2/x%2541.xml", 1),
        ("**/*.xml", 7),
        ("**", 8),
        ("odd/a%5B1%5D%2A.xml", 1),
        ("odd/a%5B*", 1),
        ("odd/a[1].xml", 1),
        ("odd", 2),
        ("d=2/**/c.xml", 1),
        ("*/below", 1),
        ("*/below/*.xml", 1),
    ],
)
def test_what_paths_stand_for(store: Store, path: str, number: int) -> None:
    """The same as of folders of this machine; each file has the name that was given."""
    for scheme in store.schemes:
        found = list_files([store.path(path, scheme)])
        assert len(found) == number, found
        assert list_files([file.path for file in found]) == found
        for file in found:
            assert file.problem is None
            assert file.path.startswith(store.path(scheme=scheme).partition("?")[0])
            with opened(file.path) as content:
                assert len(content.read()) == file.size
    by_pattern = list_files([store.path("d=*")])
    assert [file.path for file in by_pattern] == [store.path(name) for name in ESCAPED]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone.xml", "there is no such file or folder"),
        ("gone/*.xml", "no file has a name like this"),
        ("d=*/*.html", "no file has a name like this"),
        ("gone/**", "no file has a name like this"),
    ],
)
def test_what_leads_nowhere(store: Store, path: str, message: str) -> None:
    with pytest.raises(tamis.UsageError, match=message):
        list_files([store.path(path)])


SCRIPT = """
import json, sys
from pyspark.sql import SparkSession
from tamis import spark as tamis_spark

remote, folder, *paths = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
rows = tamis_spark.match_files(spark, paths, {"all": "//a"}).collect()
source = spark.read.format("tamis").option("subscriptions", folder + "/s.tsv")
loaded = [row for path in paths for row in source.load(path).collect()]
print(json.dumps([[row.document for row in found] for found in (rows, loaded)]))
"""


def test_spark(
    s3: Store, azure: Store, write: Callable[..., None], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A command; and the data source and Spark Connect, whose server has the settings."""
    write({"s.tsv": "all\t//a\n", "script.py": SCRIPT})
    for name, value in (s3.settings | azure.settings).items():
        monkeypatch.setenv(name, value)
    paths = [s3.path("d=*"), azure.path("d=*")]
    names = [store.path(name) for store in (s3, azure) for name in ESCAPED]
    command = [COMMAND, "run", "--subscriptions", "s.tsv", "--output", "out", "--input", *paths]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(pq.read_table("out/matches")["document"].to_pylist()) == sorted(names)
    assert sorted(pq.read_table("out/manifest")["file"].to_pylist()) == sorted(names)
    done = subprocess.run(
        [*command, "--only-new"], env=environment(), capture_output=True, text=True, check=False
    )
    assert "0 documents" in done.stderr
    with connect_server(tmp_path) as url:
        said = subprocess.run(
            [sys.executable, "script.py", url, str(tmp_path), *paths],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
    assert said.returncode == 0, said.stderr
    assert list(map(sorted, json.loads(said.stdout))) == [sorted(names)] * 2


def test_what_is_gone_when_it_is_read_is_an_error(store: Store) -> None:
    reader = SplitReader(DEFAULT_LIMITS, as_streams=False)
    uri = store.path("gone.xml")
    ((name, error),) = reader.documents(InputSplit(uri, uri))
    assert name == uri
    assert isinstance(error, UnreadableDocument)
    assert error.message.startswith("cannot read it: ")


# -- nobody answers --------------------------------------------------------------------------------


@contextmanager
def silent() -> Iterator[int]:
    """The port of a server that takes connections, and says nothing."""
    with socket.create_server((HOST, 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("uri", "needs"),
    [
        ("s3a://orders/in", "AWS_ACCESS_KEY_ID"),
        ("gs://orders/in", "GOOGLE_APPLICATION_CREDENTIALS"),
        ("abfss://orders@nobody.dfs.core.windows.net/in", "AZURE_STORAGE_KEY"),
        ("hdfs://nobody:9000/in", "HADOOP_HOME"),
        ("hdfs:/in", "HADOOP_HOME"),
    ],
)
def test_no_answer_is_an_error_in_time(
    uri: str, needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filesystems, "SECONDS_MAX", 2.0)
    with silent() as port:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{HOST}:{port}")
        filesystems._connected.cache_clear()
        for ask in (lambda: check_paths([uri]), lambda: list_files([f"{uri}/*.xml"])):
            start = time.monotonic()
            with pytest.raises(tamis.UsageError, match=f"cannot list it: .*{needs}") as caught:
                ask()
            assert time.monotonic() - start < 20
            assert "\n" not in str(caught.value)
        with pytest.raises(OSError, match=needs):
            opened(f"{uri}/a.xml")


@pytest.mark.parametrize("uri", ["oss://bucket/in", "ftp://host/a.xml", "https://host/a.xml"])
def test_an_unknown_scheme_says_the_way(uri: str) -> None:
    with pytest.raises(tamis.UsageError, match=r"Tamis reads file, .*s3a.*, and not .*binaryFile"):
        list_files([uri])


def test_results_are_not_written_there() -> None:
    for output in ("s3a://orders/out", "hdfs:/out", Path("s3://orders/out")):
        with pytest.raises(tamis.UsageError, match=r"match_files\(.*\)\.write"):
            ParquetStore(output)
    assert ParquetStore("file:/tmp").folder == Path("/tmp")
