"""Loads in processes of their own, a mock server to send to, and a collector to tell."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import orjson
import pytest


class Pushed:
    """A `saasload` command under way."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        """Start it."""
        mine = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "saasload", *arguments],
            cwd=folder,
            env={**mine, "COLUMNS": "200", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def metrics_url(self) -> str:
        """Wait for the line that says where metrics are."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if match := re.match(r"metrics at (http://127\.0\.0\.1:\d+/metrics)", line):
                return match[1]
        raise AssertionError("no metrics were offered")

    def end(self) -> tuple[int, dict[str, Any], str]:
        """Wait for its end; give its exit code, its report and what it said."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, orjson.loads(out) if out else {}, err


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Pushed]]:
    """Give a function that starts `saasload` with arguments and variables."""
    started: list[Pushed] = []

    def run(*arguments: str, **environment: str) -> Pushed:
        started.append(Pushed(tmp_path, arguments, environment))
        return started[-1]

    yield run
    for pushed in started:
        pushed.process.kill()
        pushed.process.communicate()


@pytest.fixture
def server() -> Iterator[str]:
    """Start a mock server on a port of its own choosing; give its address."""
    command = [sys.executable, "-m", "mock_server", "--port", "0", "--announce", "--die-with-stdin"]
    with subprocess.Popen(
        [*command, "--scenario", "fast"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        yield orjson.loads(process.stdout.readline())["url"]
        process.kill()


class Collector:
    """Takes what OpenTelemetry exports, and answers with a status."""

    def __init__(self) -> None:
        """Listen on a free port."""
        self.status = 200
        self.taken: list[tuple[str, bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.taken.append((self.path, body))
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its base names it so
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    """Start a collector."""
    found = Collector()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()
