"""Tokens that expire in mid-run, and what goes out again with a new one."""

from pathlib import Path

import pytest

from .line import INSTEAD, MODES, Faulty, Message, Receive, Send, refusal
from .stage import ROWS, ROWS_PER_CALL, set_up


def test_a_token_that_expires_stops_the_run_and_a_new_one_completes_it(tmp_path: Path) -> None:
    """Without a token file a 401 in mid-run is exit code 3; nothing of what it answered was executed."""
    for mode in MODES:
        stage = set_up(tmp_path / mode, mode, {})
        stage.faulty.faults = {("write", number): "401" for number in range(3, 50)}
        INSTEAD["401"] = refusal(401, "Access token expired")
        try:
            first = stage.push()
        finally:
            del INSTEAD["401"]

        assert (first.exit_code, first.in_doubt, first.rejected) == (3, 0, 0)
        assert "does not accept the token" in first.stopped
        assert stage.adds_up(first)
        assert stage.ledger() == stage.accepted()
        last = stage.resume()
        assert (last.exit_code, last.accepted) == (0, ROWS)
        assert stage.ledger() == stage.accepted()


class Expiring:
    """A mock whose token expires after some writes; the next one is written to a file by someone else."""

    def __init__(self, app: Faulty, token_file: Path, after: int) -> None:
        """Accept the first token for so many writes."""
        self.app = app
        self.token_file = token_file
        self.after = after
        self.writes = 0
        self.refused = 0
        self.token = b"Bearer first"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Refuse a token that is not the present one; let the mock see its own."""
        self.writes += scope["method"] == "POST"
        if self.writes == self.after:
            self.token = b"Bearer second"
            self.token_file.write_text("second\n")
        headers = dict(scope["headers"])
        if headers[b"authorization"] != self.token:
            self.refused += 1
            await receive()
            await refusal(401, "Invalid token").pass_on(send)
            return
        known = [*(headers | {b"authorization": b"Bearer mock-token"}).items()]
        await self.app({**scope, "headers": known}, receive, send)


@pytest.mark.parametrize("mode", MODES)
def test_a_token_that_is_renewed_in_its_file_goes_on(mode: str, tmp_path: Path) -> None:
    """The call that was refused goes out once more with the new token; nobody notices."""
    stage = set_up(tmp_path, mode, {})
    token = tmp_path / "token"
    token.write_text("first")
    expiring = stage.faulty = Expiring(stage.faulty, token, after=3)  # type: ignore[assignment]

    report = stage.push(token_file=token)

    assert expiring.refused
    assert (report.exit_code, report.accepted) == (0, ROWS)
    assert stage.ledger() == stage.accepted()


@pytest.mark.parametrize("mode", MODES)
def test_every_try_carries_the_same_bytes(mode: str, tmp_path: Path) -> None:
    """C48: a body is sent again whole, whether it is answered with 503 or with 401."""
    stage = set_up(tmp_path, mode, {})
    token = tmp_path / "token"
    token.write_text("first")
    bodies: list[bytes] = []
    faulty = Expiring(Faulty(stage.app, {("write", 3): "503 with a wait"}), token, after=2)

    async def recording(scope: Message, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        if scope["method"] == "POST":
            bodies.append(body)

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await faulty(scope, again, send)

    stage.faulty = recording  # type: ignore[assignment]
    report = stage.push(token_file=token, parallel=1)

    assert report.accepted == ROWS
    repeated = [body for body in bodies if bodies.count(body) > 1]
    assert len(repeated) == 2 * 2
    assert len(set(bodies)) == ROWS // ROWS_PER_CALL[mode]
