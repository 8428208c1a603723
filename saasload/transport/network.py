"""How the target is reached: proxies, certificates, time-outs, from settings and from the environment."""

import contextlib
import ipaddress
import os
import ssl
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import certifi
import httpx

from saasload.errors import ConfigError

_CA_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """How the target is reached; what is left empty comes from the environment or from the system.

    `connect_s` bounds name, connection and TLS handshake together. `keepalive_s` is how long an idle connection is
    kept: below the 5 seconds after which common servers drop theirs, for a POST that meets a connection just dropped
    is in doubt. `max_reply_bytes` counts after decompression.
    """

    connect_s: float = 10.0
    keepalive_s: float = 4.0
    max_reply_bytes: int = 64 * 2**20
    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    proxies: Literal["environment", "none"] = "environment"


def target_url(base_url: str) -> httpx.URL:
    """Check a target's address at the door."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ConfigError(f"target address: {str(error).lower()}") from error
    if url.userinfo:
        raise ConfigError(f"target address {url.host}: credentials do not belong in it")
    if url.scheme not in _PORTS or not url.host:
        raise ConfigError(f"target address {base_url!r}: must start with http:// or https:// and a host")
    return url


def proxy_for(target: httpx.URL, network: Network) -> str | None:
    """Choose the proxy for one address as curl does: its scheme's variable or ALL_PROXY, unless NO_PROXY has it."""
    if network.proxies == "none":
        return None
    found = urllib.request.getproxies()
    kind = target.scheme if found.get(target.scheme) else "all"
    address = found.get(kind)
    if not address or bypasses_proxy(target, found.get("no", "")):
        return None
    lower = f"{kind}_proxy"
    variable = next((name for name in (lower, lower.upper()) if os.environ.get(name)), lower)
    # the value stays out of the messages: it may hold a password
    try:
        proxy = httpx.URL(address if "://" in address else f"http://{address}")
    except httpx.InvalidURL:
        raise ConfigError(f"{variable}: not an address") from None
    if proxy.scheme not in _PORTS:
        raise ConfigError(f"{variable}: {proxy.scheme} proxies are not supported, give an http:// or https:// address")
    if not proxy.host:
        raise ConfigError(f"{variable}: not an address")
    return str(proxy)


def bypasses_proxy(target: httpx.URL, no_proxy: str) -> bool:
    """Tell whether a NO_PROXY list has the target: names and their subdomains, addresses, networks, each with a port.

    What cannot be read matches nothing.

    >>> bypasses_proxy(httpx.URL("http://10.1.2.3/"), "localhost,10.0.0.0/8,[::1]")
    True
    """
    host = target.host.lower()
    port = target.port or _PORTS.get(target.scheme)
    for word in no_proxy.lower().replace(",", " ").split():
        entry = word.rpartition("://")[2]
        name, _, end = entry.rpartition(":")
        if end.isdigit() and name and (":" not in name or name.endswith("]")):
            if int(end) != port:
                continue
            entry = name
        if entry == "*" or _covers(entry.strip("[]"), host):
            return True
    return False


def _covers(entry: str, host: str) -> bool:
    try:
        network = ipaddress.ip_network(entry, strict=False)
    except ValueError:
        name = entry.lstrip("*").lstrip(".")
        return bool(name) and (host == name or host.endswith(f".{name}"))
    try:
        return ipaddress.ip_address(host) in network
    except ValueError:
        return False


def tls_context(network: Network) -> ssl.SSLContext:
    """Verify always: against the file or folder that is named, else against the system's and certifi's authorities."""
    named = [("ca_file", network.ca_file)] if network.ca_file else []
    named = named or [(name, os.environ[name]) for name in _CA_VARIABLES if os.environ.get(name)][:1]
    if named:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
    else:
        context = ssl.create_default_context()
        context.load_verify_locations(cafile=certifi.where())
    for name, path in named:
        with _readable(f"{name}: {path}"):
            Path(path).stat()
            if Path(path).is_dir():
                context.load_verify_locations(capath=path)
            else:
                context.load_verify_locations(cafile=path)
    if network.client_cert:
        with _readable(f"client_cert: {network.client_cert}"):
            context.load_cert_chain(network.client_cert, network.client_key or None, password=_no_password)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    # without this OpenSSL asks on the terminal
    raise PermissionError(0, "its key is encrypted")


@contextlib.contextmanager
def _readable(place: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise ConfigError(f"{place}: not a certificate that can be used") from error
    except OSError as error:
        raise ConfigError(f"{place}: {(error.strerror or 'cannot be read').lower()}") from error
