"""``tamis serve``, and its clients: ``tamis publish``, ``subscribe`` and ``tail``."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from click.exceptions import Exit

from tamis.cli.console import (
    Results,
    Status,
    in_options,
    of_document,
    open_results,
    reading,
    say,
    standard_input,
)
from tamis.cli.documents import DOCUMENT_HELP, Documents
from tamis.cli.options import Argument, Option
from tamis.core.errors import DocumentError, MissingExtra, UsageError

if TYPE_CHECKING:
    from tamis.broker.client import Client
    from tamis.broker.delivery.addresses import Network

EXAMPLES = {
    "serve": """\b
Examples:
  tamis serve --data broker/
  tamis serve --data broker/ --host 0.0.0.0 --port 80 --allow-http --allow-network 10.0.0.0/8
  tamis serve --data one/ --store postgresql://tamis@db/broker --address http://10.0.0.1:8080

\b
  curl -H "Authorization: Bearer $(cat broker/token)" http://127.0.0.1:8080/v1/topics
""",
    "publish": """\b
Examples:
  tamis publish --topic orders --token @broker/token in/*.xml
  sensors | tamis publish --topic alarms --token @broker/token --events -

\b
Results:
  {"document": "in/1.xml", "number": 17, "version": 3, "matches": 2}
  {"document": "in/2.xml", "error": "mismatched tag", "line": 2, "column": 18}
  {"document": "-", "line": 1, "number": 18, "version": 3, "matches": 0}
""",
    "subscribe": """\b
Examples:
  export TAMIS_URL=http://127.0.0.1:8080 TAMIS_TOKEN=@broker/token
  tamis subscribe --topic orders --create-topic --id large --expression '//order[total > 1000]'
  tamis subscribe --topic orders --subscriptions orders.tsv --payload document
  tamis subscribe --topic orders --id all --expression //order --webhook https://example.com/hook
""",
    "tail": """\b
Examples:
  tamis tail --topic orders --id large --token @broker/token
  tamis tail --topic orders --id large --token @broker/token --count 10 > ten.ndjson

\b
Results:
  {"topic": "orders", "subscription": "large", "number": 17, "attempt": 1, "replay": false, …}
""",
}
TopicOption = Annotated[str, Option(metavar="NAME", help="The topic.")]
_BATCH, _BATCH_BYTES = 500, 4 << 20


class Server(NamedTuple):
    """The broker that a command speaks to.

    Options:
        url: The broker: what tamis serve says that it serves. Without the option, the environment
            variable TAMIS_URL.
        token: The token, or @FILE, which has it: FOLDER/token of tamis serve --data FOLDER. Without
            the option, the environment variable TAMIS_TOKEN.
    """

    url: Annotated[str | None, Option(metavar="URL", show_default="http://127.0.0.1:8080")] = None
    token: Annotated[str | None, Option(metavar="TOKEN")] = None

    @contextmanager
    def connected(self) -> Iterator[Client]:
        """A client; an error of the broker says what to do."""
        try:
            from tamis.broker.client import BrokerProblem, Client  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise MissingExtra("broker", error.name or "httpx2") from None
        try:
            with Client(self.url, self.token) as client:
                yield client
        except BrokerProblem as problem:
            hints = [
                hint
                for code, about, hint in _HINTS
                if code == problem.code and about in str(problem)
            ]
            raise UsageError(": ".join([str(problem), *hints])) from None


_HINTS = (
    ("broker-unauthorized", "", "give --token @FOLDER/token, the FOLDER of tamis serve --data"),
    ("broker-forbidden", "", "give --token another one, which has it"),
    ("broker-taken", "has a subscription", "choose another --id"),
    ("broker-unknown", "there is no topic", "tamis subscribe --create-topic makes it"),
)
"""The code of a problem, a part of its text, and what to do."""


def serve(  # noqa: PLR0913, PLR0917 - one for each option
    data: Annotated[Path, Option(metavar="FOLDER")],
    store: Annotated[str | None, Option(metavar="URL", show_default="a file in FOLDER")] = None,
    address: Annotated[str | None, Option(metavar="URL", show_default="http://ADDRESS:N")] = None,
    host: Annotated[str, Option(metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, Option(metavar="N", min=1)] = 8080,
    allow_network: Annotated[list[str] | None, Option(metavar="NETWORK")] = None,
    allow_http: bool = False,
    allow_origin: Annotated[list[str] | None, Option(metavar="URL")] = None,
    body_bytes: Annotated[int, Option(metavar="N", min=1)] = 64 << 20,
    body_seconds: Annotated[float, Option(metavar="SECONDS")] = 30.0,
    log: Literal["text", "json"] = "text",
) -> None:
    """Serve a broker: messages in, matches and messages out, over HTTP.

    Keeps everything in one folder, and answers a message only when it is stored durably. The first
    start writes a token with all rights to FOLDER/token, which only its owner can read.

    Ends with SIGTERM or SIGINT, after it answered and stored what has come in.

    Options:
        data: The folder that keeps messages, subscriptions and tokens. It is made if it is absent.
        store: A database of PostgreSQL that keeps them instead, postgresql://USER@HOST/DATABASE.
            Several processes may share it. Each has a folder of its own, for the indexes.
        address: With a store that is shared: where the other processes reach this one.
        host: The address to listen at.
        port: The port to listen at.
        allow_network: A network that webhooks may be sent to, although it is private, such as
            127.0.0.0/8; may be repeated.
        allow_http: Webhooks may be sent without TLS.
        allow_origin: A web site whose pages may read answers in a browser, such as
            https://example.com; may be repeated.
        body_bytes: The largest body of a request, also when it is decompressed.
        body_seconds: How long the body of a request may take to arrive.
        log: How warnings and errors are written on standard error: as text, or one JSON object per
            line.
    """
    gc.disable()  # until the server runs: it makes a fifth of the start
    try:
        import uvloop  # noqa: PLC0415 - only this command needs the extra

        from tamis.broker.http.app import JsonLines, ServeOptions  # noqa: PLC0415
        from tamis.broker.http.app import serve as run  # noqa: PLC0415
        from tamis.broker.http.ingest import IngestOptions  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra("broker", error.name or "fastapi") from None
    networks, bodies = _networks(allow_network or []), IngestOptions(body_bytes, body_seconds)
    options = ServeOptions(
        data, host, port, networks, allow_http,
        bodies=bodies, origins=(*(allow_origin or ()),), store=store, address=address,
    )  # fmt: skip

    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonLines() if log == "json" else text)
    logging.getLogger("tamis.broker").addHandler(handler)

    def started(url: str) -> None:
        token = data / "token"
        say(f"serving {url}, data in {data}" + f", token in {token}" * token.exists())

    uvloop.run(run(options, started))


def _networks(names: list[str]) -> tuple[Network, ...]:
    from ipaddress import ip_network  # noqa: PLC0415 - keeps --help fast

    try:
        return tuple(map(ip_network, names))
    except ValueError as error:
        raise UsageError(f"--allow-network: {error}") from None


# -- clients ---------------------------------------------------------------------------------------


def publish(
    documents: Annotated[list[str], Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    topic: TopicOption,
    server: Server = Server(),
    events: bool = False,
) -> None:
    """Publish documents, or events, to a topic of a broker.

    Prints one JSON object per message, in their order, when the broker has stored the message
    durably: its number in the topic, and how many subscriptions it matches. A message that the
    broker refuses has "error" instead. The other messages are stored, and the exit status is 3.

    Options:
        events: Each file has one event, a JSON object, per line. Without the option, each document
            is a message.
    """
    if documents.count("-") > 1:
        raise UsageError("standard input can be read only once: give - once")
    if not events and (named := [each for each in documents if each.endswith(_OF_JSON)]):
        raise UsageError(f"{named[0]} has JSON: add --events, for an event a line")
    with server.connected() as client, open_results() as results:
        batches = _events(documents) if events else _documents(documents)
        for batch in batches:
            _publish(client, topic, batch, events, results)


_OF_JSON = (".json", ".ndjson", ".jsonl")
_Messages = list[tuple[dict[str, object], bytes | DocumentError]]
"""How the result of each message begins, and its bytes."""


def _documents(arguments: list[str]) -> Iterator[_Messages]:
    from tamis.documents.source import decompressed  # noqa: PLC0415 - keeps --help fast

    batch: _Messages = []
    size = 0
    for target in Documents(arguments):
        document: bytes | DocumentError
        try:
            if isinstance(target.document, DocumentError):
                raise target.document
            document = b"".join(decompressed(target.document))
            size += len(document)
        except DocumentError as error:
            document = error
        batch.append((of_document(target), document))
        if len(batch) == _BATCH or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _events(names: list[str]) -> Iterator[_Messages]:
    """The lines of files; those of a pipe as soon as they are there."""
    for name in names:
        rest, number = b"", 1
        with reading(name), ExitStack() as stack:
            file = standard_input() if name == "-" else stack.enter_context(open(name, "rb"))
            while chunk := file.read1(1 << 20) or (rest and b"\n"):  # type: ignore[attr-defined]
                *lines, rest = (rest + chunk).split(b"\n")
                numbered = enumerate(lines, number)
                number += len(lines)
                yield [
                    ({"document": name, "line": n}, line) for n, line in numbered if line.strip()
                ]


def _publish(
    client: Client, topic: str, messages: _Messages, are_events: bool, results: Results
) -> None:
    bodies = [body for _, body in messages if isinstance(body, bytes)]
    content_type = "application/json" if are_events else None
    many = [bodies[n : n + _BATCH] for n in range(0, len(bodies), _BATCH)]
    sent = [client.publish_many(topic, each, content_type=content_type) for each in many]
    replies = chain.from_iterable(sent)
    for beginning, body in messages:
        reply = next(replies) if isinstance(body, bytes) else body
        if not isinstance(reply, Exception):
            results.write(beginning | reply._asdict())
            continue
        more = {} if are_events else {"line": None, "column": None} | getattr(reply, "more", {})
        results.write({**beginning, "error": in_options(str(reply)), **more})
        results.errors += 1


def subscribe(  # noqa: PLR0913, PLR0917 - one for each option
    topic: TopicOption,
    server: Server = Server(),
    id: Annotated[str | None, Option(metavar="ID")] = None,
    expression: Annotated[str | None, Option(metavar="TEXT")] = None,
    subscriptions: Annotated[Path | None, Option(metavar="FILE|DIR")] = None,
    language: Literal["xpath", "events", "flwr"] = "xpath",
    payload: Literal["ids", "document", "nodes", "message"] = "ids",
    webhook: Annotated[str | None, Option(metavar="URL")] = None,
    create_topic: bool = False,
) -> None:
    """Add subscriptions to a topic of a broker.

    Prints one JSON object: the subscription, with the secret that the broker made for a webhook; or
    how many subscriptions were added. Those that cannot be used are listed on standard error, and
    the exit status is 2. The other subscriptions are added.

    Options:
        id: The id of a single subscription.
        expression: Its expression.
        subscriptions: A UTF-8 file with one subscription per line: id, tab, expression. In
            *.ndjson, each line is {"id": …, "expression": "…"}, and may have what the broker's
            export has: language, payload, delivery, webhook. For flwr, also a folder with a file
            ID.xq for each subscription.
        language: xpath and flwr match XML, events matches JSON objects.
        payload: What consumers get. ids: the numbers of messages. document: the message. nodes:
            what an XPath selects. message: what a FLWR expression makes.
        webhook: Where the broker sends messages. Without it, consumers fetch them.
        create_topic: Make the topic, unless it is there.
    """
    if (subscriptions is None) == (id is None) or (id is None) != (expression is None):
        raise UsageError("give either --subscriptions, or --id and --expression")
    options: dict[str, Any] = {"language": language, "payload": payload}
    if webhook is not None:
        options["webhook"] = {"url": webhook}
    lines = [] if subscriptions is None else _lines(subscriptions, options)
    with server.connected() as client, open_results() as results:
        if create_topic and topic not in (each["name"] for each in client.topics()):
            client.create_topic(topic)
        if id is not None and expression is not None:
            results.write(client.subscribe(topic, id, expression, **options))
            return
        made = client.import_subscriptions(topic, lines)
        for each in made.pop("errors"):
            say(f"{subscriptions}, subscription {each['line']}: {each['problem']['detail']}")
        results.write(made)
    if made["refused"]:
        raise Exit(Status.USAGE)


def _lines(path: Path, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The subscriptions of a file or folder, as an import takes them."""
    if path.suffix != ".ndjson":
        pairs = _pairs(path, options["language"])
        return [{"id": str(id), "expression": text, **options} for id, text in pairs]
    with reading(path):
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    found: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        with suppress(KeyError, RecursionError, TypeError, ValueError):
            if line.strip():
                found.append(options | (each := json.loads(line)) | {"id": str(each["id"])})
            continue
        raise UsageError(f"{path}, line {number}: it is no JSON object with an id")
    return found


def _pairs(path: Path, language: str) -> list[tuple[object, str]]:
    """The ids and expressions of a file or folder, which the broker will check."""
    from tamis.language.entries import file_entries  # noqa: PLC0415 - keeps --help fast

    if language == "flwr" and (path.is_dir() or path.suffix in (".xq", ".xquery")):
        files = sorted(path.glob("*.xq*")) if path.is_dir() else [path]
        with reading(path):
            return [(file.stem, file.read_text(encoding="utf-8-sig")) for file in files]
    found = file_entries(path)
    if found.refused:
        raise UsageError(f"{path}, {found.refused[0]}")
    return list(zip(found.ids, found.expressions, strict=True))


def tail(
    topic: TopicOption,
    id: Annotated[str, Option(metavar="ID")],
    server: Server = Server(),
    count: Annotated[int | None, Option(metavar="N", min=1)] = None,
) -> None:
    """Print the messages of a subscription as they come, and acknowledge them.

    Prints one JSON object per message. A message is acknowledged after it is printed. Ends with
    Ctrl-C: messages that were not printed stay with the broker.

    Options:
        id: The id of the subscription.
        count: End after so many messages.
    """
    with (
        server.connected() as client,
        open_results() as results,
        closing(client.messages(topic, id, count=count)) as messages,
    ):
        for message in messages:
            results.write(message)
