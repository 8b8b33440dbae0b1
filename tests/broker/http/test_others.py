"""What others wrote speaks to the broker: a browser, a generated client, a collector of traces."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.broker.http.process import XML, BrokerProcess, eventually

ROOT = Path(__file__).parents[3]
ORDER = "<order/>"


class Site:
    """A web site: it has a page, and keeps what is posted."""

    def __init__(self) -> None:
        self.page, self.posted = b"", list[tuple[str, dict[str, str], bytes]]()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(site.page)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                names = {name.lower(): value for name, value in self.headers.items()}
                site.posted.append((self.path, names, body))
                self.answer(b"")

            def answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def bodies(self, path: str) -> list[bytes]:
        return [body for where, _, body in self.posted if where == path]


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    thread = Thread(target=site.server.serve_forever)
    thread.start()
    yield site
    site.server.shutdown()
    site.server.server_close()
    thread.join()


PAGE = """<script>
const events = new EventSource(URL);
let last = Promise.resolve();  // one request after the other, so that they arrive in order
events.onmessage = (event) => {
  last = last.then(() => fetch("/got", {method: "POST", body: event.data}));
};
events.onerror = () => fetch("/error", {method: "POST", body: "it connects again"});
</script>"""


@pytest.mark.spark  # the tier that installs programs
def test_server_sent_events_in_a_browser(site: Site, tmp_path: Path) -> None:
    browser = subprocess.check_output([ROOT / "scripts/find-chromium"], text=True).strip()
    broker = BrokerProcess(tmp_path / "broker", "--allow-origin", site.url)
    topic = broker.new_topic("orders")
    broker.subscribe(topic, "all", "//order", payload="document")
    url = f"{broker.url}{topic}/subscriptions/all/events?token={broker.token}"
    site.page = PAGE.replace("URL", json.dumps(url)).encode()
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    with subprocess.Popen([browser, *options, site.url], stderr=subprocess.DEVNULL) as process:
        try:
            numbers = [broker.publish(topic, f"<order>{n}</order>")["number"] for n in (1, 2)]
            eventually(lambda: len(site.bodies("/got")) == 2, 30.0)
            broker.stop()
            eventually(lambda: site.bodies("/error"), 30.0)
            broker.start()
            numbers.append(broker.publish(topic, "<order>3</order>")["number"])
            eventually(lambda: len(site.bodies("/got")) == 3, 30.0)
        finally:
            process.terminate()
    broker.stop()
    got = [json.loads(body) for body in site.bodies("/got")]
    assert [each["number"] for each in got] == numbers == [1, 2, 3]
    assert [each["document"] for each in got] == [f"<order>{n}</order>" for n in (1, 2, 3)]


def test_a_generated_client(
    broker: BrokerProcess, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openapi.json").write_bytes(broker.http.get("/openapi.json").content)
    generate = [str(Path(sys.executable).parent / "openapi-python-client"), "generate"]
    generate += ["--path", "openapi.json", "--output-path", "generated"]
    subprocess.run(generate, check=True, cwd=tmp_path, capture_output=True)
    monkeypatch.syspath_prepend(tmp_path / "generated")
    from tamis_client import AuthenticatedClient, models  # noqa: PLC0415 - it is generated
    from tamis_client.api.deliveries import acknowledge, lease  # noqa: PLC0415
    from tamis_client.api.subscriptions import get_subscription, subscribe  # noqa: PLC0415
    from tamis_client.api.topics import get_topic  # noqa: PLC0415

    name = topic.rpartition("/")[2]
    client = AuthenticatedClient(base_url=broker.url, token=broker.token)
    with client as client:
        new = models.NamedSubscription(id="all", expression="//order")
        made = subscribe.sync(name, client=client, body=new)
        assert isinstance(made, models.StoredSubscription)
        assert made == get_subscription.sync(name, "all", client=client)
        refused = subscribe.sync(name, client=client, body=new)
        assert (refused.status, refused.code) == (409, "broker-taken")
        http: Any = client.get_httpx_client()
        assert http.post(f"{topic}/messages", content=ORDER, headers=XML).status_code == 202
        taken = lease.sync(name, "all", client=client, body=models.LeaseRequest())
        assert [each["number"] for each in taken.messages] == [1]
        done = models.Acknowledgement(token=taken.token, numbers=[1])
        assert acknowledge.sync_detailed(name, "all", client=client, body=done).status_code == 204
        assert get_topic.sync(name, client=client).messages == 1


def test_a_trace_goes_from_the_publisher_to_the_webhook(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", site.url)
    broker = BrokerProcess(tmp_path, "--allow-http", "--allow-network", "127.0.0.0/8")
    topic = broker.new_topic("orders")
    broker.subscribe(topic, "all", "//order", webhook={"url": f"{site.url}/hook"})
    broker.publish(topic, ORDER, traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
    eventually(lambda: site.bodies("/hook"), 30.0)
    broker.stop()
    published, sent = (span for span in spans(site) if span.trace_id.hex() == "a" * 32)
    assert (published.name, sent.name) == (f"POST {topic}/messages", "webhook")
    assert published.parent_span_id.hex() == "b" * 16
    assert sent.parent_span_id == published.span_id
    (headers,) = (headers for path, headers, _ in site.posted if path == "/hook")
    assert headers["traceparent"] == f"00-{'a' * 32}-{sent.span_id.hex()}-01"


def spans(site: Site) -> Iterator[Any]:
    """The spans that a collector got."""
    for path, headers, body in site.posted:
        if path == "/v1/traces":
            is_packed = headers.get("content-encoding") == "gzip"
            request = ExportTraceServiceRequest()
            request.ParseFromString(gzip.decompress(body) if is_packed else body)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    yield from scope.spans


def test_without_a_collector_a_message_keeps_its_trace(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "all", "//order")
    for trace in (f"00-{'a' * 32}-{'b' * 16}-01", "no trace"):
        broker.publish(topic, ORDER, traceparent=trace)
    first, second = broker.lease(topic, "all")["messages"]
    assert first["traceparent"] == f"00-{'a' * 32}-{'b' * 16}-01"
    assert "traceparent" not in second
