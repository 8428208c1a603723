"""Proxies and certificates, from the environment and from settings: they work, or the message names them."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from saasload.errors import ConfigError, InDoubtError, NotSentError, SaasloadError
from saasload.model import Reply, Request
from saasload.transport import Network, Sender, open_client
from saasload.transport.network import bypasses_proxy

from .conftest import Certificate
from .engines import BODY_SECRET, OURS, POST, TRIO, Engine, open_sender, send
from .fault_server import Behave, FaultServer, Wire

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"
OPENED = pytest.mark.parametrize("opened", [*OURS, TRIO], ids=lambda engine: engine.name)


def answer(wire: Wire) -> None:
    """Answer every request."""
    while wire.read() is not None:
        wire.write(OK)


def tunnel(certificate: Certificate) -> Behave:
    """Be a proxy and, behind its tunnel, the target."""

    def behave(wire: Wire) -> None:
        wire.read()
        wire.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        wire.start_tls(certificate.server())
        answer(wire)

    return behave


def opening(engine: Engine, base_url: str, network: Network | None = None) -> SaasloadError | None:
    """Open a client and send nothing."""

    async def main() -> SaasloadError | None:
        try:
            async with open_client(base_url=base_url, parallel=1, network=network):
                return None
        except SaasloadError as error:
            return error

    return engine.run(main)


@OPENED
@pytest.mark.parametrize("variable", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_used(opened: Engine, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the whole address, and its password in its own header."""
    with FaultServer(answer) as proxy:
        monkeypatch.setenv(variable, f"http://user:{BODY_SECRET}@127.0.0.1:{proxy.port}")
        (reply,) = send(opened, "http://target.example/v1")

        assert isinstance(reply, Reply)
        assert proxy.arrived[0].line.startswith("POST http://target.example/v1/api/v1/123/crm?sig=")
        assert proxy.arrived[0].headers["proxy-authorization"].startswith("Basic ")
        assert proxy.arrived[0].headers["host"] == "target.example"


@OPENED
def test_a_tunnel_of_the_environment_is_used(
    opened: Engine, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under https the proxy sees a host and a port; the request is only for the target."""
    with FaultServer(tunnel(certificate)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"127.0.0.1:{proxy.port}")
        (reply,) = send(opened, "https://target.example", network=Network(ca_file=str(certificate.cert)))

        assert isinstance(reply, Reply)
        assert proxy.arrived[0].line == "CONNECT target.example:443 HTTP/1.1"
        assert "authorization" not in proxy.arrived[0].headers
        assert proxy.arrived[1].line.startswith("POST /api/v1/123/crm")


@OPENED
def test_a_tunnel_refused_is_never_sent(opened: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a proxy refuses has not reached the target; its password is not told."""

    def behave(wire: Wire) -> None:
        wire.read()
        wire.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with FaultServer(behave) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:{BODY_SECRET}@127.0.0.1:{proxy.port}")
        (error,) = send(opened, "https://target.example")

    assert type(error) is NotSentError
    assert str(error) == "target.example: the proxy refuses the connection"


def test_a_proxy_that_hangs_up_is_never_sent(ours: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that ends before the tunnel stands carried nothing of the request."""
    with FaultServer(lambda wire: (wire.read(), None)[1]) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        (error,) = send(ours, "https://target.example")

    assert type(error) is NotSentError


def test_a_proxy_that_never_answers_is_never_sent(ours: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connect limit covers the tunnel."""

    def behave(wire: Wire) -> None:
        wire.read()
        wire.server.closing.wait(5.0)

    with FaultServer(behave) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        (error,) = send(ours, "https://target.example", network=Network(connect_s=0.2))

    assert type(error) is NotSentError
    assert str(error) == "target.example: no connection in time"


@OPENED
@pytest.mark.parametrize(
    "no_proxy",
    [
        "127.0.0.1,10.0.0.0/8,[::1]",
        "localhost,::1/128,127.0.0.0/8",
        "*",
        "::::,%%, ,127.0.0.1:{port}",
        "http://127.0.0.1",
    ],
)
@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9"])
def test_no_proxy_is_heeded_in_every_form(
    opened: Engine, no_proxy: str, proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks and IPv6 addresses in NO_PROXY break nothing; a target it has is reached directly."""
    with FaultServer(answer) as server:
        monkeypatch.setenv("ALL_PROXY", proxy)
        monkeypatch.setenv("NO_PROXY", no_proxy.format(port=server.port))
        (reply,) = send(opened, server.url)

    assert isinstance(reply, Reply)


@OPENED
@pytest.mark.parametrize("no_proxy", ["localhost,::1/128", "10.0.0.0/8", "27.0.0.1", "127.0.0.1:1", "7.0.0.1"])
def test_a_target_that_no_proxy_lacks_goes_through_the_proxy(
    opened: Engine, no_proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what NO_PROXY really says is left out."""
    with FaultServer(answer) as proxy, FaultServer(answer) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", no_proxy)
        send(opened, server.url)

        assert (len(proxy.arrived), len(server.arrived)) == (1, 0)


@pytest.mark.parametrize(
    ("entry", "target", "direct"),
    [
        ("[::1]", "http://[::1]:8000", True),
        ("::1/128", "http://[::1]:8000", True),
        ("[::1]:8000", "http://[::1]:8000", True),
        ("[::1]:8001", "http://[::1]:8000", False),
        ("fd00::/8", "http://[fd00::2]", True),
        ("fd00::/8", "http://10.0.0.1", False),
        ("10.0.0.0/8", "http://target.example", False),
        ("example", "http://target.example", True),
        (".target.example", "http://api.target.example", True),
        ("*.target.example", "http://API.target.example", True),
        ("target.example", "http://nottarget.example", False),
        ("target.example:443", "https://target.example", True),
        ("target.example:443", "http://target.example", False),
        (".", "http://target.example", False),
    ],
)
def test_an_entry_of_no_proxy_means_what_curl_means(entry: str, target: str, direct: bool) -> None:
    """Names with their subdomains, addresses, networks, ports."""
    assert bypasses_proxy(httpx.URL(target), entry) is direct


@OPENED
def test_proxies_can_be_left_out(opened: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedded mock server is reached directly whatever the environment says."""
    with FaultServer(answer) as server:
        monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
        (reply,) = send(opened, server.url, network=Network(proxies="none"))

    assert isinstance(reply, Reply)


@OPENED
@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("ALL_PROXY", "socks5://u:REFRESH-BBB@127.0.0.1:9", "ALL_PROXY: socks5 proxies are not supported"),
        ("https_proxy", "http://:REFRESH-BBB@", "https_proxy: not an address"),
        ("HTTPS_PROXY", "http://u:REFRESH-BBB@[::1", "HTTPS_PROXY: not an address"),
        ("SSL_CERT_FILE", "/no/such.pem", "SSL_CERT_FILE: /no/such.pem: no such file or directory"),
        ("SSL_CERT_DIR", "/no/such", "SSL_CERT_DIR: /no/such: no such file or directory"),
        ("REQUESTS_CA_BUNDLE", __file__, f"REQUESTS_CA_BUNDLE: {__file__}: not a certificate that can be used"),
    ],
)
def test_a_variable_that_cannot_work_is_named(
    opened: Engine, variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening says which variable is wrong, before anything is sent, without its password."""
    monkeypatch.setenv(variable, value)

    error = opening(opened, "https://target.example")

    assert type(error) is ConfigError
    assert str(error).startswith(said)
    assert BODY_SECRET not in str(error)


@OPENED
@pytest.mark.parametrize(
    ("network", "said"),
    [
        (Network(ca_file="/no/ca.pem"), "ca_file: /no/ca.pem: no such file"),
        (Network(client_cert="/no/me.pem"), "client_cert: /no/me.pem: no such file"),
        (Network(client_cert=__file__), f"client_cert: {__file__}: not a certificate"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(opened: Engine, network: Network, said: str) -> None:
    """Settings are checked when the client is opened."""
    error = opening(opened, "https://target.example", network)

    assert type(error) is ConfigError
    assert str(error).startswith(said)


def test_an_encrypted_key_does_not_ask_on_the_terminal(certificate: Certificate, tmp_path: Path) -> None:
    """A key with a password is refused with a message."""
    locked = tmp_path / "locked.key"
    command = ["openssl", "pkey", "-in", str(certificate.key), "-aes256", "-passout", "pass:x", "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)

    error = opening(TRIO, "https://target.example", Network(client_cert=str(certificate.cert), client_key=str(locked)))

    assert type(error) is ConfigError
    assert "its key is encrypted" in str(error)


@OPENED
@pytest.mark.parametrize("source", ["ca_file", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"])
def test_own_authorities_are_trusted(
    opened: Engine, source: str, certificate: Certificate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A company's own authority works from the setting and from each usual variable."""
    network = Network()
    if source == "ca_file":
        network = Network(ca_file=str(certificate.cert))
    elif source == "SSL_CERT_DIR":
        command = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate.cert)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        (tmp_path / f"{done.stdout.strip()}.0").write_bytes(certificate.cert.read_bytes())
        monkeypatch.setenv(source, str(tmp_path))
    else:
        monkeypatch.setenv(source, str(certificate.cert))

    with FaultServer(answer, tls=certificate.server()) as server:
        heard = send(opened, server.url, POST, POST, network=network)

        assert [type(each) for each in heard] == [Reply, Reply]
        assert server.connections == 1


@OPENED
def test_a_client_certificate_is_shown(
    opened: Engine, certificate: Certificate, foreign_certificate: Certificate
) -> None:
    """A server that asks for a certificate gets it; without one the call is in doubt, for TLS 1.3 says so late."""
    with_it = Network(
        ca_file=str(certificate.cert),
        client_cert=str(foreign_certificate.cert),
        client_key=str(foreign_certificate.key),
    )
    with FaultServer(answer, tls=certificate.server(asks_for=foreign_certificate.cert)) as server:
        (reply,) = send(opened, server.url, network=with_it)
        (error,) = send(opened, server.url, network=Network(ca_file=str(certificate.cert)))

        assert isinstance(reply, Reply)
        assert type(error) is InDoubtError
        assert len(server.arrived) == 1


@pytest.mark.parametrize(
    "base_url",
    ["target.example", "ftp://target.example", "https://", "https://me:REFRESH-BBB@target.example", "http://[::1"],
)
def test_an_address_that_cannot_work_is_refused(base_url: str) -> None:
    """An address needs http or https and a host, and holds no credentials."""
    error = opening(TRIO, base_url)

    assert type(error) is ConfigError
    assert str(error).startswith("target address")
    assert BODY_SECRET not in str(error)


def test_another_host_over_the_same_client_has_its_own_way(
    ours: Engine, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sign-in host of a plain target may need TLS and a proxy: its settings are found at its first call."""

    async def main() -> tuple[int, str]:
        async with open_sender(ours, server.url) as sender:
            ordinary = await sender.send(POST)
            other = Sender("https://target.example", sender._client, {})
            monkeypatch.setenv("SSL_CERT_FILE", "/no/such.pem")
            with pytest.raises(ConfigError) as caught:
                await other.send(Request("POST", "/token", {}))
            return ordinary.status, str(caught.value)

    with FaultServer(answer) as server:
        status, said = ours.run(main)

    assert status == 201
    assert said.startswith("SSL_CERT_FILE: ")


def test_aiohttp_is_not_imported_before_a_client_is_opened() -> None:
    """`saasload --help` stays quick."""
    code = "import sys, saasload.transport; sys.exit('aiohttp' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
