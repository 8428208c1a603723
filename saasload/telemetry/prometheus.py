"""Metrics as Prometheus fetches them: over HTTP, on this machine's own address."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from saasload.errors import UsageError
from saasload.telemetry.sight import METRICS, Metric, Sight

ADDRESS = "127.0.0.1"
_LEAVE_S = 0.05
"""How long, at the end, the server may take to notice that it is over."""


class SightCollector(Collector):
    """Reads all metrics when they are fetched."""

    def __init__(self, sight: Sight) -> None:
        """Take what to read from."""
        self._sight = sight

    def collect(self) -> Iterator[Family]:
        """Give each metric that has a value now."""
        for metric in METRICS:
            samples = self._sight.read(metric)
            if not samples:
                continue
            family = _family(metric)
            for labels, value in samples:
                if isinstance(family, InfoMetricFamily):
                    family.add_metric([], dict(labels))
                else:
                    family.add_metric([labels[label] for label in metric.labels], value)
            yield family


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily | InfoMetricFamily:
    name = f"saasload_{metric.name}" + ("_seconds" if metric.unit == "s" else "")
    if metric.kind == "info":
        return InfoMetricFamily(name, metric.words)
    family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return family(name, metric.words, labels=metric.labels)


def registry_of(sight: Sight) -> CollectorRegistry:
    """Make a registry that holds our metrics only."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SightCollector(sight))
    return registry


@contextlib.contextmanager
def serve_metrics(port: int, sight: Sight, say: Callable[[str], None]) -> Iterator[str]:
    """Serve metrics from a thread, and give their address; port 0 takes a free one.

    Raises UsageError where the port cannot be had.
    """
    try:
        server = make_server(ADDRESS, port, make_wsgi_app(registry_of(sight)), _Server, _Handler)
    except OSError as error:
        raise UsageError(f"--metrics-port {port}: {(error.strerror or str(error)).lower()}") from error
    url = f"http://{ADDRESS}:{server.server_port}/metrics"
    thread = threading.Thread(target=server.serve_forever, args=(_LEAVE_S,), name="metrics", daemon=True)
    thread.start()
    say(f"metrics at {url}")
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    """A thread a request, so that one who reads slowly holds up nobody."""

    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without asking a name server who we are."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = ADDRESS, self.server_address[1]
        self.setup_environ()

    def handle_error(self, *_about: object) -> None:
        """Say nothing: whoever asked has gone away."""


class _Handler(WSGIRequestHandler):
    timeout = 10.0

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its base names it so
        """Keep quiet about requests."""
