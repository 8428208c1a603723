"""Killed, stopped, and gone on with: every row once, whatever happened in between."""

import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from saasload.engine import resume_sync
from saasload.errors import RunFolderError, UsageError
from saasload.run.folder import make_run_folder
from saasload.run.history import read_report
from saasload.run.journal import create_journal

from .conftest import PUSH, RESUME, SLOW, Place, Server, to

MODES = ("insert", "batch", "xml")


def complete(place: Place, server: Server, rows: int = 120) -> bool:
    """Tell whether the run and the ledger both hold each row once."""
    return server.booked() == (rows, 0) and sorted(place.rows("accepted")) == list(range(1, rows + 1))


@pytest.mark.parametrize(("mode", "booked"), [("insert", 1), ("batch", 60), ("xml", 60)])
def test_a_killed_run_goes_on_where_it_stopped(
    mode: str, booked: int, place: Place, serve: Callable[..., Server]
) -> None:
    """After SIGKILL only what is not settled is sent, and what was on the wire is looked up first."""
    server = serve()
    process = place.start(*PUSH, *to(server, mode))
    server.wait_for(booked)
    place.kill(process)
    before = server.audit()["calls"]

    ran = place.run(*RESUME)

    assert (ran.code, ran.report["accepted"], ran.report["in_doubt"]) == (0, 120, 0)
    assert complete(place, server)
    per_call = 1 if mode == "insert" else 5
    # what was settled before is not sent again: the calls that are left, three that were on the wire, and questions
    assert server.audit()["calls"] - before <= (120 - booked) / per_call + 3 + 3 + 2


def test_a_run_that_was_killed_twice_and_more_ends_complete(place: Place, serve: Callable[..., Server]) -> None:
    """Killed at three moments, in the resumes too; each goes on from the last."""
    server = serve()
    arguments = (*PUSH, *to(server))
    for booked in (25, 60, 100):
        process = place.start(*arguments)
        server.wait_for(booked)
        place.kill(process)
        arguments = RESUME

    ran = place.run(*RESUME)

    assert ran.code == 0
    assert complete(place, server)


@pytest.mark.parametrize(
    "changes",
    [("--parallel", "1"), ("--mode", "xml", "--rows-per-call", "7")],
    ids=["parallel", "xml"],
)
def test_a_resume_may_change_how_rows_travel(
    changes: tuple[str, ...], place: Place, serve: Callable[..., Server]
) -> None:
    """Progress is kept by row: another parallelism, mode or size of calls goes on all the same."""
    server = serve()
    process = place.start(*PUSH, *to(server))
    server.wait_for(30)
    place.kill(process)

    ran = place.run(*RESUME, *changes)

    assert ran.code == 0
    assert complete(place, server)


def test_a_batch_run_goes_on_as_single_posts(place: Place, serve: Callable[..., Server]) -> None:
    """From large calls to small ones: the rows of a call that was on the wire are told apart."""
    server = serve()
    process = place.start(*PUSH, *to(server, "batch", per_call=20))
    server.wait_for(20)
    place.kill(process)

    ran = place.run(*RESUME, "--mode", "insert", "--rows-per-call", "1")

    assert (ran.code, ran.report["mode"]) == (0, "insert")
    assert complete(place, server)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_drains_and_says_how_to_go_on(
    number: signal.Signals, code: int, place: Place, serve: Callable[..., Server]
) -> None:
    """Calls on the wire end, nothing is in doubt, one line has the command; the resume sends the rest."""
    server = serve()
    process = place.start(*PUSH, *to(server))
    server.wait_for(20)
    process.send_signal(number)
    ran = place.end(process)

    assert ran.code == code
    assert (ran.report["in_doubt"], ran.report["unsent"] > 0) == (0, True)
    assert server.booked() == (ran.report["accepted"], 0)
    assert [line for line in ran.lines if "saasload resume run" in line]
    again = place.run(*RESUME)
    assert again.code == 0
    assert complete(place, server)


def test_a_second_signal_leaves_at_once_and_the_journal_tells_the_truth(
    place: Place, serve: Callable[..., Server]
) -> None:
    """Calls of ten minutes are not waited for; their rows are in doubt, and the resume finds them."""
    slow = SLOW.replace("call_s = 0.5", "call_s = 0.5, row_s = 0.0") + "[company.1001]\nslower = 1200.0\n"
    server = serve(slow)
    process = place.start(*PUSH, *to(server))
    server.wait_for(80)
    process.send_signal(signal.SIGTERM)
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    ran = place.end(process)

    assert ran.code in {130, 143}
    # the call of the slow company is on the wire, and nobody has heard of it
    assert ran.report["in_doubt"] == 1
    assert ran.report["read"] == sum(ran.report[name] for name in ("accepted", "rejected", "in_doubt", "unsent"))
    assert len(place.rows("in_doubt")) == 1


def test_a_signal_in_a_long_wait_ends_at_once(place: Place, serve: Callable[..., Server]) -> None:
    """C43: while every company sits in a wait of an hour, SIGTERM does not wait with them."""
    fault = 'kind = "status"\nstatus = 429\nretry_after_s = 3000\nfirst = 31\nlast = 99\nendpoint = "insert"\n'
    server = serve(f"{SLOW}[[faults]]\n{fault}", time_scale=10.0)
    process = place.start(*PUSH, *to(server))
    server.wait_for(30)
    while server.audit()["refused"] < 3:
        pass
    process.send_signal(signal.SIGTERM)
    ran = place.end(process)

    assert (ran.code, ran.report["accepted"], ran.report["in_doubt"]) == (143, 30, 0)
    assert ran.report["duration_s"] < 60


def test_a_second_process_on_a_run_is_refused_with_the_first_ones_number(
    place: Place, serve: Callable[..., Server]
) -> None:
    """One process a run folder; resume, push and verify say who has it, and disturb nothing."""
    server = serve(time_scale=1.0)
    process = place.start(*PUSH, *to(server))
    server.wait_for(5)

    for arguments in (RESUME, (*PUSH, *to(server)), ("report", "run", "--verify", "--runs", "runs")):
        ran = place.run(*arguments)
        assert (ran.code, len(ran.lines)) == (2, 1)
        assert arguments[0] == "push" or f"in use by process {process.pid}" in ran.err

    process.send_signal(signal.SIGTERM)
    assert place.end(process).code == 143
    assert server.booked() == (len(place.rows("accepted")), 0)


def test_two_runs_side_by_side_do_not_meet(place: Place, serve: Callable[..., Server]) -> None:
    """Two loads into two targets from one folder: each has its own run, and both are listed."""
    servers = serve(), serve()
    processes = [
        place.start("push", "rows.parquet", "--runs", "runs", "--run", f"run-{place_no}", "--json", *to(server))
        for place_no, server in enumerate(servers)
    ]
    assert [place.end(process).code for process in processes] == [0, 0]

    assert [server.booked() for server in servers] == [(120, 0), (120, 0)]
    listed = place.run("runs", "--runs", "runs", "--json")
    assert sorted((one["run"], one["state"], one["accepted"]) for one in listed.report) == [  # type: ignore[index]
        ("run-0", "finished", 120),
        ("run-1", "finished", 120),
    ]


def test_an_unknown_run_is_answered_with_the_nearest(place: Place) -> None:
    """Exit code 2, one line, and the name that was meant."""
    create_journal(make_run_folder(place.folder / "runs", "customers-2026"), {}).close()

    for command in (("resume",), ("report", "--verify")):
        ran = place.run(command[0], "custmers-2026", "--runs", "runs", *command[1:])
        assert (ran.code, len(ran.lines)) == (2, 1)
        assert "did you mean customers-2026?" in ran.err


def _stopped(place: Place, server: Server, mode: str = "insert") -> Path:
    process = place.start(*PUSH, *to(server, mode))
    server.wait_for(40)
    process.send_signal(signal.SIGTERM)
    assert place.end(process).code == 143
    return place.folder / "runs" / "run" / "journal.db"


def test_a_journal_that_cannot_be_used_is_said_and_nothing_is_started_over(
    place: Place, serve: Callable[..., Server]
) -> None:
    """From a newer version, damaged, cut short, or gone: one line, exit code 2, nothing sent."""
    server = serve()
    journal = _stopped(place, server)
    whole = journal.read_bytes()
    calls = server.audit()["calls"]

    with closing(sqlite3.connect(journal)) as connection:
        connection.execute("pragma user_version = 99")
    newer = place.run(*RESUME)
    journal.write_bytes(whole[:50] + bytes(2000) + whole[2050:])
    damaged = place.run(*RESUME)
    for ran, words in ((newer, "newer version"), (damaged, "journal.db")):
        assert (ran.code, len(ran.lines)) == (2, 1), ran.err
        assert words in ran.err
    for bytes_left in (whole[: len(whole) // 2], b""):
        journal.write_bytes(bytes_left)
        with pytest.raises(RunFolderError, match=r"journal\.db"):
            resume_sync(place.folder / "runs", "run")
    journal.unlink()
    with pytest.raises(UsageError, match="no runs here"):
        resume_sync(place.folder / "runs", "run")
    assert server.audit()["calls"] == calls


def test_the_proof_counts_what_the_target_holds(place: Place, serve: Callable[..., Server]) -> None:
    """`report --verify` finds each accepted row once; with another run's rows in its place it says what is missing."""
    server = serve()
    ran = place.run(*PUSH, *to(server, "xml"))
    assert ran.code == 0

    proof = place.run("report", "run", "--verify", "--runs", "runs", "--json")

    found = {name: proof.report[name] for name in ("expected", "once", "missing", "twice", "different", "keyless")}
    assert found == {"expected": 120, "once": 120, "missing": 0, "twice": 0, "different": 0, "keyless": 0}
    assert proof.report["replaced"] == 0
    assert proof.code == 0
    other = serve()
    journal = place.folder / "runs" / "run" / "journal.db"
    with closing(sqlite3.connect(journal)) as connection, connection:
        connection.execute("update facts set value = replace(value, ?, ?)", (server.url, other.url))
    missing = place.run("report", "run", "--verify", "--runs", "runs")
    assert (missing.code, "120 missing" in missing.err) == (1, True)
    other.kill()
    silent = place.run("report", "run", "--verify", "--runs", "runs")
    assert (silent.code, len(silent.lines)) == (2, 1)


def test_runs_are_listed_with_what_became_of_them(place: Place, serve: Callable[..., Server]) -> None:
    """One stopped, one cut off, one damaged: a list never fails, and looking changes nothing."""
    server = serve()
    _stopped(place, server)
    process = place.start("push", "rows.parquet", "--runs", "runs", "--run", "cut", *to(serve()))
    while not (place.folder / "runs" / "cut" / "spool.arrow").exists():
        pass
    place.kill(process)
    bad = place.folder / "runs" / "bad"
    bad.mkdir()
    (bad / "journal.db").write_bytes(b"not a journal, and longer than a header of a hundred bytes" * 9)

    listed = place.run("runs", "--runs", "runs", "--json")
    shown = place.run("runs", "--runs", "runs")

    states = {one["run"]: one["state"] for one in listed.report}  # type: ignore[index]
    assert states == {"run": "stopped", "cut": "cut off", "bad": "damaged"}
    assert (shown.code, shown.out.count("rows.parquet")) == (0, 2)
    with pytest.raises(RunFolderError, match="saasload resume cut"):
        read_report(place.folder / "runs" / "cut")


def test_rows_in_doubt_without_a_rule_are_a_persons_choice(place: Place, serve: Callable[..., Server]) -> None:
    """Stop sends nothing and says what to do; skip leaves them and ends with 4; resend sends them once more."""
    (place.folder / "no-rule.toml").write_text(_without_rule())
    server = serve(SLOW + '[[faults]]\nkind = "drop-before"\nfirst = 20\nlast = 21\nendpoint = "insert"\n')
    ran = place.run(*PUSH, *to(server), "--profile", "no-rule.toml")
    assert (ran.code, ran.report["in_doubt"], ran.report["accepted"]) == (4, 2, 118)
    assert len(place.rows("in_doubt")) == 2

    stop = place.run(*RESUME, "--in-doubt", "stop")
    assert (stop.code, len([line for line in stop.lines if line.startswith("saasload: ")])) == (2, 1)
    assert "--in-doubt=resend" in stop.err
    skip = place.run(*RESUME, "--in-doubt", "skip")
    assert (skip.code, skip.report["in_doubt"], server.booked()) == (4, 2, (118, 0))
    resend = place.run(*RESUME, "--in-doubt", "resend")
    assert (resend.code, resend.report["accepted"]) == (0, 120)
    assert complete(place, server)


def _without_rule() -> str:
    """Take the mock's profile, without its rules for rows in doubt."""
    text = (Path(__file__).parents[3] / "configs" / "platforms" / "mock.toml").read_text()
    start = text.index("[entities.Account.in_doubt]")
    return text[:start] + text[text.index("[entities.Account.look_up]") :].replace("quiet_s = 30.0", "quiet_s = 1.0")


@pytest.mark.parametrize(("limit", "stops"), [("50%", False), ("5%", True)])
def test_too_many_rejected_rows_stop_the_run(
    limit: str, stops: bool, place: Place, serve: Callable[..., Server]
) -> None:
    """--max-errors N and P%: exit code 3, the rest unsent; a resume with a wider limit sends it."""
    lines = [f"{1001 + row % 3},{row:04},{'Name' if row % 4 else ''}" for row in range(120)]
    (place.folder / "rows.csv").write_text("company,Code,Name\n" + "\n".join(lines) + "\n")
    server = serve()

    ran = place.run("push", "rows.csv", *PUSH[2:], *to(server), "--max-errors", limit)

    if not stops:
        assert (ran.code, ran.report["rejected"], ran.report["accepted"]) == (1, 30, 90)
        return
    assert (ran.code, ran.report["unsent"] > 0) == (3, True)
    assert "--max-errors" in ran.report["stopped"]
    more = place.run(*RESUME, "--max-errors", "12")
    assert (more.code, more.report["rejected"] > ran.report["rejected"]) == (3, True)
    again = place.run(*RESUME, "--max-errors", "100%")
    assert (again.code, again.report["rejected"], again.report["accepted"]) == (1, 30, 90)
    assert server.booked() == (90, 0)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_run_folder_that_cannot_be_written_is_said_before_anything_is_sent(
    place: Place, serve: Callable[..., Server]
) -> None:
    """Exit code 2, one line, no call."""
    (place.folder / "runs").mkdir(mode=0o500)
    server = serve()

    ran = place.run(*PUSH, *to(server))

    assert (ran.code, len(ran.lines)) == (2, 1)
    assert server.audit()["calls"] == 0


def test_the_self_test_passes(place: Place) -> None:
    """`saasload chaos` kills, resumes and audits three small loads."""
    ran = place.run_process("chaos", "--rounds", "3", "--seed", "1", "--rows", "60", "--companies", "3")

    assert ran.code == 0, ran.err
    assert "3 of 3 rounds good" in ran.err
