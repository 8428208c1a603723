"""Put a failure in one line that holds nothing of the request or of the reply.

The texts of the libraries are not passed on: they hold URLs with their query, and bytes of the server.
"""

import os
import socket
import ssl
from collections.abc import Mapping

import httpx

CLOSED = "connection closed without a whole reply"
BROKEN_OFF = "reply broken off in its body"
NOT_HTTP = "reply is not HTTP"

_BY_CLASS: Mapping[type, str] = {
    httpx.ConnectTimeout: "no connection in time",
    httpx.ConnectError: "no connection",
    httpx.PoolTimeout: "no free connection in time",
    httpx.ProxyError: "the proxy refuses the connection",
    httpx.TimeoutException: "no reply in time",
    httpx.RemoteProtocolError: "reply broken off or not HTTP",
    httpx.DecodingError: "reply cannot be decompressed",
    httpx.NetworkError: "connection lost",
    httpx.LocalProtocolError: "request is not valid HTTP",
}


class TooLargeError(httpx.RemoteProtocolError):
    """A reply above the limit; the rest of it stays unread."""

    def __init__(self, limit: int) -> None:
        """Name the limit, in bytes."""
        super().__init__(f"reply longer than {limit:,} bytes")


def reason(error: Exception) -> str:
    """Say what went wrong, in lower case and without the place.

    >>> reason(httpx.ReadTimeout("at https://host/?token=..."))
    'no reply in time'
    """
    system = system_error(error)
    # a time-out has a cause of its own; what else hangs in its chain is the debris of the cancelling
    if system is not None and not isinstance(error, httpx.TimeoutException):
        return _in_words(system)
    if isinstance(error, TooLargeError) or str(error) in {CLOSED, BROKEN_OFF, NOT_HTTP}:
        return str(error)
    named = next((_BY_CLASS[kind] for kind in type(error).__mro__ if kind in _BY_CLASS), None)
    return named or f"{type(error).__name__} while answering"


def system_error(error: BaseException | None) -> OSError | None:
    """Find what the operating system or OpenSSL said at the bottom of a chain of errors."""
    found: OSError | None = None
    while error is not None:
        # subclasses made by libraries (aiohttp's ClientOSError) are wrapping, not the thing
        if isinstance(error, OSError) and error.errno is not None and type(error).__module__ in _SYSTEM_MODULES:
            found = error
        inside = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inside or error.__cause__ or error.__context__
    return found


_SYSTEM_MODULES = {"builtins", "socket", "ssl"}


def _in_words(error: OSError) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"certificate not accepted: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS failed: {(error.reason or 'closed').replace('_', ' ').lower()}"
        case socket.gaierror():
            return "the name cannot be resolved"
        case _:
            return os.strerror(error.errno or 0).lower()
