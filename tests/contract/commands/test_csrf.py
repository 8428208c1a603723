"""Real sockets and processes at a target that wants a token against forgery with each call that changes something."""

from collections.abc import Callable

import orjson
import pytest

from .conftest import RESUME, SLOW, Place, Server

MODES = ("insert", "batch", "xml")
PROFILE = """
extends = "mock-unlimited"
name = "own"
[csrf]
path = "/api/v1/{company}/crm/"
"""
WEARING = SLOW + "[csrf]\nlasts_calls = 4\n"
AGING = SLOW + "[csrf]\nlasts_s = 5.0\n"


def push(place: Place, server: Server, mode: str) -> tuple[str, ...]:
    """Write the profile, and say how to load by it."""
    (place.folder / "own.toml").write_text(PROFILE)
    return (
        "push", "rows.parquet", "--runs", "runs", "--run", "run", "--json", "--to", server.url, "--profile", "own.toml",
        "--mode", mode, "--rows-per-call", "1" if mode == "insert" else "4",
    )  # fmt: skip


def refusals(server: Server) -> int:
    """Count the calls that were refused for their token."""
    lines = server.client.get("/_mock/calls", params={"status": 403, "last": 10_000}).text.splitlines()
    return sum(orjson.loads(line)["status"] == 403 for line in lines)


@pytest.mark.parametrize("world", [WEARING, AGING], ids=["by-calls", "by-the-clock"])
@pytest.mark.parametrize("mode", MODES)
def test_a_token_that_expires_in_mid_run_is_renewed_and_nothing_is_lost(
    mode: str, world: str, place: Place, serve: Callable[..., Server]
) -> None:
    """Each row once; the calls that were refused went again."""
    server = serve(world)

    done = place.run(*push(place, server, mode))

    assert (done.code, done.report["accepted"], done.report["in_doubt"]) == (0, 120, 0), done.err
    assert server.booked() == (120, 0)
    assert refusals(server) > 0


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_was_killed_goes_on_with_a_session_of_its_own(
    mode: str, place: Place, serve: Callable[..., Server]
) -> None:
    """Tokens live as long as their process."""
    server = serve(WEARING)
    process = place.start(*push(place, server, mode))
    server.wait_for(20)
    place.kill(process)

    done = place.run(*RESUME)

    assert (done.code, done.report["accepted"]) == (0, 120), done.err
    assert server.booked() == (120, 0)


def test_a_target_that_takes_no_token_is_one_line(place: Place, serve: Callable[..., Server]) -> None:
    """Exit code 3, and what to look for."""
    server = serve(SLOW + "[csrf]\nlasts_s = 0\n")

    done = place.run(*push(place, server, "batch"), "--parallel", "1")

    assert (done.code, done.report["unsent"], server.booked()) == (3, 120, (0, 0))
    assert "the target refuses a fresh x-csrf-token" in done.report["stopped"]
    assert "cookies?" in done.err
