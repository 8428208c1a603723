"""Engines and certificates."""

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from .engines import ALL, OURS, Engine

_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_CA_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy or certificate variable of this machine reaches a test."""
    for name in (*_VARIABLES, *(name.lower() for name in _VARIABLES), *_CA_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=ALL, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine, httpx's own among them: one table holds for all."""
    chosen: Engine = request.param
    return chosen


@pytest.fixture(params=OURS, ids=lambda engine: engine.name)
def ours(request: pytest.FixtureRequest) -> Engine:
    """Our transport, on both event loops."""
    chosen: Engine = request.param
    return chosen


@dataclass(frozen=True, slots=True)
class Certificate:
    """A self-signed certificate with its key, which is its own authority."""

    cert: Path
    key: Path

    def server(self, *, asks_for: Path | None = None) -> ssl.SSLContext:
        """Serve with it; with `asks_for`, only for clients that show that certificate."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.cert, self.key)
        if asks_for is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(asks_for)
        return context


def _make(folder: Path, name: str, names: str) -> Certificate:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    command = f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name}"
    files = ["-addext", f"subjectAltName={names}", "-out", str(made.cert), "-keyout", str(made.key)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return made


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate for 127.0.0.1 and target.example."""
    return _make(tmp_path_factory.mktemp("tls"), "server", "IP:127.0.0.1,DNS:target.example")


@pytest.fixture(scope="session")
def foreign_certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """A certificate for another host; also used as a client's."""
    return _make(tmp_path_factory.mktemp("tls"), "foreign", "DNS:elsewhere.example")
