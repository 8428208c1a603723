"""Tokens: who may come in."""

from mock_server.replies import Reply, error


class Door:
    """Lets in whoever carries the scenario's token."""

    __slots__ = ("_accepted",)

    def __init__(self, token: str) -> None:
        """Keep the header that opens."""
        self._accepted = b"Bearer " + token.encode()

    def check(self, authorization: bytes) -> Reply | None:
        """Return the refusal, None for whoever may come in."""
        if authorization == self._accepted:
            return None
        reply = error(401, "Unauthorized: access token missing, expired or not valid")
        reply.headers.append((b"www-authenticate", b"Bearer"))
        return reply
