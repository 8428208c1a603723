"""Sign each request with the token that a file holds now."""

from collections.abc import Generator
from pathlib import Path

import httpx

from saasload.errors import ConfigError

UNAUTHORIZED = 401


class TokenFile(httpx.Auth):
    """A bearer token kept in a file that someone else renews.

    A request that is refused with 401 was not executed: the file is read again, and if its token is another one
    the same request goes out once more, with it.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; ConfigError where that fails."""
        self._path = path
        self._token = self._read()

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Sign, and sign anew once."""
        used = self._token
        request.headers["Authorization"] = f"Bearer {used}"
        response = yield request
        if response.status_code != UNAUTHORIZED:
            return
        if self._token == used:
            self._token = self._read()
        if self._token != used:
            request.headers["Authorization"] = f"Bearer {self._token}"
            yield request

    def _read(self) -> str:
        try:
            token = self._path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else "not ASCII text"
            message = f"--token-file {self._path}: cannot be read: {reason}"
            raise ConfigError(message) from error
        if not token or not token.isprintable() or " " in token:
            message = f"--token-file {self._path}: not a token: it is empty, or holds spaces or line ends"
            raise ConfigError(message)
        return token
