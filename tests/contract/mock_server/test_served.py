"""The mock as a process on a real socket."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ACCOUNTS = "/api/v1/1001/crm/Accounts"
COMMAND = (sys.executable, "-m", "mock_server")


def test_it_serves_and_ends_with_its_standard_input(served: Any, stderr_of: Any) -> None:
    """A row goes in and comes out; closing stdin ends the server without a word."""
    with served() as (client, process):
        made = client.post(ACCOUNTS, json={"Code": "1", "Name": "A"})
        listed = client.get(ACCOUNTS, params={"$filter": f"Code eq '{'1':>18}'"}).json()["d"]["results"]

        assert made.status_code == 201
        assert made.headers["x-mock-time-scale"] == "1"
        assert listed[0]["ID"] == made.json()["d"]["ID"]
        assert stderr_of(process) == b""
        assert process.wait(10) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_traceback(served: Any, stderr_of: Any, number: signal.Signals) -> None:
    """Ctrl-C is a normal end, also with a connection open."""
    with served() as (client, process):
        client.get("/_mock/health")
        process.send_signal(number)

        assert process.wait(10) == 0
        assert stderr_of(process) == b""


def test_time_runs_faster_at_a_scale(served: Any) -> None:
    """A read of a mock second takes a twentieth, and the reply says the scale."""
    with served("default", "--time-scale", "20") as (client, _):
        answer = client.get(ACCOUNTS)

        assert answer.headers["x-mock-time-scale"] == "20"
        assert client.get("/_mock/stats").json()["time_scale"] == 20.0
        assert answer.elapsed.total_seconds() < 1.0


@pytest.mark.parametrize(
    ("kind", "booked"), [("drop-before", []), ("drop-after", ["1"]), ("cut", ["1"]), ("late-commit", [])]
)
def test_a_dropped_connection_is_really_dropped(
    served: Any, stderr_of: Any, tmp_path: Path, kind: str, booked: list[str]
) -> None:
    """Not one byte of an answer, or half of one; then the end of the stream."""
    path = tmp_path / "faulty.toml"
    path.write_text(f'[[faults]]\nkind = "{kind}"\nlast = 1\nafter_s = 600.0\n')
    body = json.dumps({"Code": "1", "Name": "A"}).encode()
    request = (
        f"POST {ACCOUNTS} HTTP/1.1\r\nHost: mock\r\nAuthorization: Bearer mock-token\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body

    with served(path) as (client, process):
        with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=10) as connection:
            connection.sendall(request)
            heard = b"".join(iter(lambda: connection.recv(65_536), b""))
        rows = client.get("/_mock/rows?company=1001").json()["codes"]
        later = client.post(ACCOUNTS, json={"Name": "the next call is well"})

        if kind == "cut":
            head, _, half = heard.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            assert len(half) == length // 2
        else:
            assert heard == b""
        assert rows == booked
        assert later.status_code == 201
        assert stderr_of(process) == b""


def test_a_client_that_hangs_up_leaves_the_server_well(served: Any, stderr_of: Any, tmp_path: Path) -> None:
    """In the middle of a request, or before the answer: the row of the whole one is booked, and all goes on."""
    path = tmp_path / "slow.toml"
    path.write_text("[latency.insert]\ncall_s = 0.2\n")
    body = b'{"Code": "1", "Name": "A"}'
    head = (
        f"POST {ACCOUNTS} HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer mock-token\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )

    with served(path) as (client, process):
        for sent in (head.encode() + body[:9], head.encode() + body, b"nonsense\r\n\r\n", b"\x16\x03\x01"):
            with socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=10) as connection:
                connection.sendall(sent)
        assert client.post(ACCOUNTS, json={"Code": "2", "Name": "the next one waits its turn"}).status_code == 201
        assert client.get("/_mock/rows?company=1001").json()["codes"] == ["1", "2"]
        audit = client.get("/_mock/audit").json()
        assert (audit["errors"], audit["dropped"]) == (0, 1)
        assert client.get("/_mock/stats").json()["internal_errors"] == 0
        assert stderr_of(process) == b""


def test_books_outlive_a_server_that_is_killed(served: Any, tmp_path: Path) -> None:
    """What was answered is there after a kill, with its id; another seed is refused."""
    db = str(tmp_path / "books.db")
    with served("fast", "--db", db) as (client, process):
        made = [client.post(ACCOUNTS, json={"Name": f"N{number}"}).json()["d"]["ID"] for number in range(50)]
        process.kill()
        process.wait(10)

    with served("fast", "--db", db) as (client, _):
        assert client.get(f"{ACCOUNTS}/$count").text == "50"
        assert client.get(f"{ACCOUNTS}(guid'{made[49]}')").json()["d"]["Name"] == "N49"
    done = subprocess.run(
        [*COMMAND, "--port", "0", "--db", db, "--seed", "99"], capture_output=True, timeout=20, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"was begun with seed" in done.stderr


def test_a_listener_of_events_does_not_keep_it_alive(served: Any, stderr_of: Any) -> None:
    """The stream runs until the server ends, which it does in time and without a word."""
    with served() as (client, process), client.stream("GET", "/_mock/events") as stream:
        lines = stream.iter_lines()
        assert json.loads(next(lines).removeprefix("data: "))["scenario"] == "fast"
        process.terminate()
        assert process.wait(10) == 0
        assert stderr_of(process) == b""


def test_a_body_that_is_too_large_is_refused_and_the_server_lives(served: Any, tmp_path: Path) -> None:
    """413, and the next request is served."""
    path = tmp_path / "small.toml"
    path.write_text("max_body_bytes = 1000\n")

    with served(path) as (client, _):
        assert client.post(ACCOUNTS, content=b"x" * 100_000).status_code == 413
        assert client.get(ACCOUNTS).status_code == 200


def test_the_port_is_taken() -> None:
    """One line that names it, and exit 2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        done = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, timeout=20, check=False)

    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert str(port).encode() in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--scenario", "fats"), b"did you mean fast?"),
        (("--scenario", os.devnull + ".toml"), b"cannot be read"),
        (("--host", "0.0.0.0"), b"--allow-remote"),  # noqa: S104 - this is what is refused
    ],
)
def test_a_wrong_start_is_refused_in_one_line(arguments: tuple[str, ...], says: bytes) -> None:
    """Exit 2, one line, no traceback."""
    done = subprocess.run([*COMMAND, "--port", "0", *arguments], capture_output=True, timeout=20, check=False)

    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert says in done.stderr


def test_a_person_is_told_where_it_listens() -> None:
    """A line with the address on standard error, nothing on standard output."""
    with subprocess.Popen([*COMMAND, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stdout is not None
        line = process.stderr.readline()
        process.terminate()

        assert b"listens on http://127.0.0.1:" in line
        assert process.stdout.read() == b""
