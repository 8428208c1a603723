"""Loads over real sockets: what is booked is what is reported."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import pytest

from .conftest import Place

UNLIMITED = ("--profile", "mock-unlimited")

REPORT_KEYS = {
    "run", "target", "entity", "mode", "parallel", "companies", "read", "accepted", "rejected", "in_doubt", "unsent",
    "created", "updated", "unchanged", "calls", "retries", "refused", "duration_s", "rows_per_hour", "cpu_s",
    "peak_rss_mb", "exit_code",
}  # fmt: skip


def test_without_a_target_a_mock_server_is_started_and_said_so(bare_place: Place, customers: Path) -> None:
    """The first thing a newcomer runs works by itself, and says where the rows went and how fast time runs there."""
    ran = bare_place.run_process("push", customers.name, "--partitions", "3", "--json")

    assert ran.code == 0
    assert "embedded mock server at http://127.0.0.1:" in ran.err
    assert "time runs 20 times faster" in ran.err
    assert ran.report["accepted"] == 300


@pytest.mark.parametrize(("mode", "calls"), [("insert", 300), ("batch", 3), ("xml", 3)])
def test_each_mode_books_every_row_once(
    mode: str, calls: int, saasload: Callable[..., Any], serve: Callable[..., Any], customers: Path
) -> None:
    """The ledger holds each row once, and the report and the files say the same."""
    server = serve("fast", time_scale=1.0)

    ran = saasload("push", customers.name, "--to", server.url, *UNLIMITED, "--mode", mode, "--json")

    assert ran.code == 0, ran.err
    assert server.booked() == (300, 0)
    assert {key: ran.report[key] for key in ("read", "accepted", "created", "calls")} == {
        "read": 300, "accepted": 300, "created": 300, "calls": calls,
    }  # fmt: skip
    folder = customers.parent / str(ran.report["folder"])
    accepted = pq.read_table(folder / "accepted.parquet")
    assert sorted(accepted.column("row").to_pylist()) == list(range(1, 301))
    assert all(accepted.column("id").to_pylist())
    assert pq.read_metadata(folder / "calls.parquet").num_rows == calls
    assert orjson.loads((folder / "report.json").read_bytes()) == ran.report
    assert set(ran.report) >= REPORT_KEYS


def test_the_same_file_again_by_xml_changes_nothing(
    saasload: Callable[..., Any], serve: Callable[..., Any], customers: Path
) -> None:
    """XML creates or updates by code: a second load finds every row unchanged."""
    server = serve("fast", time_scale=1.0)
    arguments = ("push", customers.name, "--to", server.url, *UNLIMITED, "--mode", "xml", "--json")

    first, second = saasload(*arguments), saasload(*arguments)

    assert (first.report["created"], second.report["unchanged"]) == (300, 300)
    assert server.booked() == (300, 0)


@pytest.mark.parametrize("mode", ["insert", "batch"])
def test_a_duplicate_is_rejected_alone(
    mode: str, saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """The target refuses the second row with a code by HTTP 500 and a text; its neighbours are booked."""
    (workplace / "rows.csv").write_text("company,Code,Name\n1001,01,A\n1001,01,B\n1001,02,C\n")
    server = serve("fast", time_scale=1.0)

    ran = saasload("push", "rows.csv", "--to", server.url, *UNLIMITED, "--mode", mode, "--json")

    assert ran.code == 1
    assert (ran.report["accepted"], ran.report["rejected"], ran.report["reasons"]) == (2, 1, {"duplicate": 1})
    rejected = pq.read_table(workplace / str(ran.report["folder"]) / "rejected.parquet").to_pylist()
    assert [(row["row"], row["Code"], row["Name"], row["status"]) for row in rejected] == [(2, "01", "B", 500)]


def test_each_row_goes_to_its_own_company_and_no_other(
    saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """Rows without a company, with an unknown one, or with one that was not picked are rejected and never sent."""
    (workplace / "rows.csv").write_text(
        "Company,Code,Name\n1001,1,A\n1002,2,B\n,3,C\n9999,4,D\n1003,5,E\n1002,6,F\n", encoding="utf-8"
    )
    server = serve("fast", time_scale=1.0)

    ran = saasload("push", "rows.csv", "--to", server.url, *UNLIMITED, "--companies", "1001,1002", "--json")

    companies = server.audit()["companies"]
    assert {company: found["rows"] for company, found in companies.items() if found["rows"]} == {"1001": 1, "1002": 2}
    assert ran.report["reasons"] == {"no-company": 1, "unknown-company": 1, "company-not-picked": 1}


def test_rows_without_a_company_column_are_dealt_evenly(
    saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """Ten rows over the first four companies: three, three, two, two."""
    lines = "".join(f"{number:03},Customer {number}\n" for number in range(1, 11))
    (workplace / "rows.csv").write_text("Code,Name\n" + lines)
    server = serve("fast", time_scale=1.0)

    saasload("push", "rows.csv", "--to", server.url, *UNLIMITED, "--partitions", "4")

    companies = server.audit()["companies"]
    assert [companies[name]["rows"] for name in ("1001", "1002", "1003", "1004")] == [3, 3, 2, 2]


def test_text_arrives_as_it_was(saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path) -> None:
    """Leading zeros, quotes, ampersands, letters beyond ASCII and emoji come through each mode unchanged."""
    names = ['Müller & "Söhne"', "<Café> 'Ünal'", "雪だるま ⛄ 😀", "tab\tand & line"]
    rows = "".join(f'1001,00{place},"{name.replace(chr(34), chr(34) * 2)}"\n' for place, name in enumerate(names))
    (workplace / "rows.csv").write_text("company,Code,Name\n" + rows, encoding="utf-8")

    server = serve("fast", time_scale=1.0)
    for mode in ("insert", "batch", "xml"):
        server.reset()
        ran = saasload("push", "rows.csv", "--to", server.url, *UNLIMITED, "--mode", mode, "-q")
        assert ran.code == 0, ran.err
        stored = _stored_names(server.url)
        assert stored == {f"00{place}": name for place, name in enumerate(names)}, mode


def _stored_names(url: str) -> dict[str, str]:
    import httpx  # noqa: PLC0415 a client that is not ours

    headers = {"Authorization": "Bearer mock-token", "Accept": "application/json"}
    reply = httpx.get(f"{url}/api/v1/1001/crm/Accounts?$filter=Code gt ''&$select=Code,Name", headers=headers)
    return {row["Code"].strip(): row["Name"] for row in reply.json()["d"]["results"]}


def test_many_in_flight_over_few_companies_end(
    saasload: Callable[..., Any], serve: Callable[..., Any], customers: Path
) -> None:
    """A hundred places for three companies: the idle ones neither hang nor spin."""
    server = serve("fast", time_scale=1.0)

    ran = saasload(
        "push", customers.name, "--to", server.url, *UNLIMITED, "--mode", "insert", "--parallel", "100", "--json"
    )

    assert (ran.code, ran.report["accepted"]) == (0, 300)


def test_quiet_says_nothing(bare_place: Place, serve: Callable[..., Any], customers: Path) -> None:
    """With --quiet a load that goes well leaves both streams empty."""
    ran = bare_place.run_process(
        "push", customers.name, "--to", serve("fast", time_scale=1.0).url, *UNLIMITED, "--quiet"
    )

    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_quiet_says_why_a_load_is_not_done(
    saasload: Callable[..., Any], serve: Callable[..., Any], workplace: Path
) -> None:
    """One line on stderr, with the command that goes on; the exit code alone would leave a person guessing."""
    server = serve("fast", time_scale=1.0)
    (workplace / "rows.csv").write_text("Code,Name\n" + "".join(f"{row},\n" for row in range(9)) + "9,Nine\n")

    ran = saasload("push", "rows.csv", "--to", server.url, *UNLIMITED, "--max-errors", "1", "--quiet")

    assert (ran.code, len(ran.lines)) == (3, 1)
    assert ran.err.startswith("saasload: stopped early: ")
    assert "go on with: saasload resume " in ran.err


def test_push_with_plan_says_what_the_load_will_take_and_sends_nothing(
    saasload: Callable[..., Any], serve: Callable[..., Any], customers: Path, workplace: Path
) -> None:
    """The same arguments as the load: its calls are those of the plan, and the target holds nothing before it."""
    server = serve("fast", time_scale=1.0)
    given = ("push", customers.name, "--to", server.url, *UNLIMITED, "--mode", "batch", "--rows-per-call", "50")

    planned = saasload(*given, "--plan", "--json")
    told = saasload(*given, "--plan")
    before = server.booked()
    loaded = saasload(*given, "--json")

    assert (planned.code, told.code, before) == (0, 0, (0, 0))
    assert not told.out
    assert "batch: " in told.err
    assert "take --mode batch" in told.err
    (forecast,) = planned.report["forecasts"]
    assert forecast["calls"] == loaded.report["calls"] > 0
    assert len(list((workplace / ".saasload" / "runs").iterdir())) == 1


def test_a_day_limit_is_told_with_companies_and_dates(
    saasload: Callable[..., Any], serve: Callable[..., Any], customers: Path
) -> None:
    """Without waiting for midnight the run ends with exit code 3: who waits until when, and how to go on."""
    server = serve("companies = 100\n[limits]\ncalls_per_day = 2\n", time_scale=1.0)

    ran = saasload(
        "push", customers.name, "--to", server.url, "--mode", "insert", "--wait-for-day", "no"
    )  # fmt: skip

    assert ran.code == 3, ran.err
    line = next(line for line in ran.err.splitlines() if line.startswith("waiting: "))
    dates = re.findall(r"(100\d) until \d{4}-\d\d-\d\d \d\d:\d\d UTC \(day limit\)", line)
    assert sorted(dates) == ["1001", "1002", "1003"]
    assert "go on with: saasload resume" in ran.err
