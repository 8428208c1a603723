"""Everything a user can meet: one clear line, the documented exit code, no traceback, nothing lost."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from .conftest import Place

GOOD = "company,Code,Name\n1001,1,A\n1002,2,B\n"
NOWHERE = ("--to", "http://127.0.0.1:9")  # discard: nobody listens there

BAD_ARGUMENTS = [
    (["push", "gone.parquet"], "gone.parquet: no such file"),
    (["push", "fake.parquet"], "fake.parquet: not a Parquet file"),
    (["push", "."], "a folder, not a file"),
    (["push", "nameless.csv"], "no column for Name, which every Account needs"),
    (["push", "twice.csv"], "columns 2 and 3 are both called 'Code'"),
    (["push", "rows.csv", "--entity", "Acount"], "did you mean Account?"),
    (["push", "rows.csv", "--mode", "bach"], "did you mean batch?"),
    (["push", "rows.csv", "--profile", "mokc"], "did you mean mock?"),
    (["push", "rows.csv", "--to", "prod"], "target prod: neither an address"),
    (["push", "rows.csv", "--to", "localhost:8000"], "did you mean http://localhost:8000?"),
    (["push", "rows.csv", "--to", "10.0.0.7:8000/api"], "did you mean http://10.0.0.7:8000/api?"),
    (["push", "rows.csv", "--profile", "gone.toml"], "profile gone.toml: no such file"),
    (["push", "rows.csv", "--companies", "@gone.txt"], "--companies @gone.txt: cannot be read: no such file"),
    (["push", "rows.csv", "--companies", "Status ="], "--companies: query, position 9"),
    (["push", "rows.csv", "--token-file", "gone"], "--token-file gone: cannot be read: no such file"),
    (["plan", "rows.csv", "--companies", "@gone.txt"], "--companies @gone.txt: cannot be read: no such file"),
    (["--no-version"], "--no-version"),
    (["sample", "out.csv", "--order", "mixed"], "--order mixed: use shuffled, sorted or dealt"),
    (["push", "rows.csv", "--to", "ftp://prod"], "must start with http:// or https://"),
    (["push", "rows.csv", "--field", "Nam=Name"], "did you mean Name?"),
    (["push", "rows.csv", "--field", "Name=Nme"], "did you mean Name?"),
    (["push", "rows.csv", "--field", "Name"], "FIELD=COLUMN"),
    (["push", "rows.csv", "--partition-by", "compny"], "did you mean 'company'?"),
    (["push", "rows.csv", "--parallel", "0"], "--parallel 0: must be greater than 0"),
    (["push", "rows.csv", "--paralel", "3"], "--parallel"),
    (["push", "rows.csv", "--rows-per-call", "100000"], "--rows-per-call 100,000: xml takes at most 100"),
    (["push", "rows.csv", *NOWHERE], "127.0.0.1:9: connection refused; is the server running"),
    (["push", "rows.csv", "--runs", "rows.csv"], "cannot be written"),
    (["push", "rows.csv", "--run", "../up"], "--run ../up"),
    (["push"], "source"),
    (["psh"], "push"),
    (["sample", "out.xlsx"], ".parquet or .csv"),
]
ANOTHER_PROGRAM = [(["mock", "--port", "70000"], "70000"), (["mock", "--scenario", "fats"], "did you mean fast?")]
"""`saasload mock` hands its process over."""


@pytest.mark.parametrize(("arguments", "words"), BAD_ARGUMENTS, ids=lambda value: "-".join(value)[:40])
def test_bad_arguments_are_one_line_and_exit_2(
    arguments: list[str], words: str, saasload: Callable[..., Any], workplace: Path
) -> None:
    """The line says what is wrong and what to do; nothing is sent, and no run folder is left."""
    (workplace / "rows.csv").write_text(GOOD)
    (workplace / "fake.parquet").write_text(GOOD)
    (workplace / "nameless.csv").write_text("company,Code\n1001,1\n")
    (workplace / "twice.csv").write_text("company,Code,code,Name\n1001,1,1,A\n")

    ran = saasload(*arguments)

    assert ran.code == 2
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not list(workplace.glob(".saasload/runs/*"))


@pytest.mark.parametrize(
    ("arguments", "words"), [BAD_ARGUMENTS[0], *ANOTHER_PROGRAM], ids=lambda value: "-".join(value)[:40]
)
def test_the_interpreter_leaves_with_2_and_says_no_more(arguments: list[str], words: str, bare_place: Place) -> None:
    """What a shell sees is what the command returned: nothing is added on the way out."""
    ran = bare_place.run_process(*arguments)

    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert len(ran.lines) == 1 or arguments[0] == "mock"


TARGET_ARGUMENTS = [
    (["--companies", "1001,77"], "--companies: company '77': the target does not have it"),
    (["--companies", "Statsu = 1"], "--companies: query, position 1: no field 'Statsu'; did you mean 'Status'?"),
    (["--companies", "Status ="], "--companies: query, position 9"),
    (["--companies", "Status = 99"], "none of the target's 100 companies"),
    (["--companies", "@gone.txt"], "gone.txt: cannot be read: no such file"),
    (["--partitions", "1000"], "1000 companies asked for, only 100"),
]


@pytest.mark.parametrize(("arguments", "words"), TARGET_ARGUMENTS, ids=lambda value: "-".join(value)[:40])
def test_companies_that_cannot_be_picked_are_one_line_and_exit_2(
    arguments: list[str], words: str, saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """Which companies there are is read from the target, and what does not fit it is said before anything is sent."""
    (workplace / "rows.csv").write_text(GOOD)
    server = serve("fast", time_scale=1.0)

    ran = saasload("push", "rows.csv", "--to", server.url, *arguments)

    assert (ran.code, len(ran.err.strip().splitlines())) == (2, 1)
    assert words in ran.err
    assert server.booked() == (0, 0)


def test_a_token_that_is_refused_is_said_without_the_token(
    saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """The line names the variable to set; the token stands nowhere, not in a file either."""
    (workplace / "rows.csv").write_text(GOOD)

    ran = saasload("push", "rows.csv", "--to", serve("default", time_scale=1.0).url, SAASLOAD_TOKEN="SECRET-AAA")  # noqa: S106 made up

    assert ran.code == 2
    assert "SAASLOAD_TOKEN" in ran.err
    assert "SECRET" not in ran.err + ran.out
    assert not [path for path in workplace.rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()]


def test_a_file_without_rows_is_said_and_is_no_failure(saasload: Callable[..., Any], workplace: Path) -> None:
    """An empty delivery is a load that is done."""
    (workplace / "empty.csv").write_text("company,Code,Name\n")

    ran = saasload("push", "empty.csv")

    assert ran.code == 0
    assert "empty.csv: no rows, so there is nothing to load" in ran.err


def test_values_that_do_not_fit_are_rejected_by_name(saasload: Callable[..., Any], workplace: Path) -> None:
    """Each bad value names its row and field in rejected.parquet; the other rows load."""
    (workplace / "rows.csv").write_text(
        "company,Code,Name,CreditLineSales,StartDate,Country\n"
        "1001,1,A,12.50,2026-01-31,NL\n1001,2,,,,\n1001,3,C,1e3,,\n1001,4,D,,2026-02-30,\n1001,5,E,,,NETHERLANDS\n1001,6\n"
    )

    ran = saasload("push", "rows.csv", "--json")

    rejected = pq.read_table(workplace / str(ran.report["folder"]) / "rejected.parquet").to_pylist()
    assert (ran.code, ran.report["accepted"], ran.report["rejected"]) == (1, 1, 5)
    assert {(row["row"], row["reason"], row["field"]) for row in rejected} == {
        (2, "missing", "Name"),
        (3, "does-not-fit", "CreditLineSales"),
        (4, "does-not-fit", "StartDate"),
        (5, "too-long", "Country"),
        (6, "unreadable", ""),
    }


BEGIN = ("push", "customers.parquet", "--mode", "insert", "--json")


def _adds_up(report: dict[str, Any]) -> bool:
    return bool(
        report["read"] == report["accepted"] + report["rejected"] + report["in_doubt"] + report["unsent"] == 300
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_drains_and_leaves_nothing_unknown(
    number: signal.Signals, code: int, bare_place: Place, serve: Callable[..., Any], customers: Path
) -> None:
    """Calls on the wire finish, the files are written, what was booked is what is reported, the rest is unsent."""
    server = serve("default", time_scale=20.0)
    process = bare_place.start(*BEGIN, "--to", server.url)
    server.wait_for(20)
    process.send_signal(number)
    ran = bare_place.end(process)

    report = ran.report
    assert ran.code == report["exit_code"] == code
    assert _adds_up(report)
    assert report["in_doubt"] == 0
    assert report["unsent"] > 0
    assert server.booked() == (report["accepted"], 0)


def test_a_server_that_goes_down_half_way_loses_nothing(
    bare_place: Place, serve: Callable[..., Any], customers: Path
) -> None:
    """What was on the wire is in doubt, what was not is unsent, and the run ends by itself with exit code 3."""
    server = serve("default", time_scale=100.0)
    process = bare_place.start(*BEGIN, "--to", server.url)
    server.wait_for(20)
    server.kill()
    ran = bare_place.end(process)

    report = ran.report
    assert (ran.code, _adds_up(report)) == (3, True)
    assert report["in_doubt"] <= 10
    assert report["unsent"] > 0
    assert "connection refused" in report["stopped"]


def test_a_port_in_use_is_said(bare_place: Place, serve: Callable[..., Any]) -> None:
    """A second mock server on a port says so and leaves with 2."""
    port = serve("fast", time_scale=1.0).url.rsplit(":", 1)[1]

    ran = bare_place.run_process("mock", "--port", port)

    assert (ran.code, len(ran.err.strip().splitlines())) == (2, 1)
    assert port in ran.err
