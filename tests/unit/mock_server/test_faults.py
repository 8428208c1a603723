"""Faults: which call is hit, and what remains booked."""

from typing import Any

import anyio
import pytest

from mock_server.faults import ConnectionDropped, Faults
from mock_server.scenario import Cost, FaultSpec, LatencySpec, Scenario

ACCOUNTS = "/api/v1/1001/crm/Accounts"


def hits(*specs: FaultSpec, calls: int = 12, company: int = 1001) -> list[int]:
    """Return the numbers of the calls that are hit."""
    faults = Faults(specs, seed=7)
    return [number for number in range(1, calls + 1) if faults.pick(company, "insert") is not None]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (FaultSpec(kind="slow", every=5), [5, 10]),
        (FaultSpec(kind="slow", every=5, first=6), [10]),
        (FaultSpec(kind="slow", first=3, last=4), [3, 4]),
        (FaultSpec(kind="slow", every=2, company=1002), []),
        (FaultSpec(kind="slow", every=2, endpoint="xml"), []),
        (FaultSpec(kind="slow", probability=1.0, last=2), [1, 2]),
    ],
)
def test_calls_are_hit_by_number(spec: FaultSpec, expected: list[int]) -> None:
    """Every n-th, from and to a number, of a company and a way to travel."""
    assert hits(spec) == expected


def test_chance_repeats_and_differs_by_company() -> None:
    """A seeded stream for each company."""
    spec = FaultSpec(kind="slow", probability=0.3)

    assert hits(spec, calls=100) == hits(spec, calls=100)
    assert hits(spec, calls=100) != hits(spec, calls=100, company=1002)
    assert 15 < len(hits(spec, calls=100)) < 45


@pytest.mark.parametrize(("kind", "booked"), [("drop-before", 0), ("drop-after", 1), ("cut", 1)])
def test_a_dropped_connection_raises_in_process(run: Any, client: Any, kind: Any, booked: int) -> None:
    """Without a socket there is nothing to close, so the application raises."""

    async def main() -> None:
        async with client(Scenario(faults=(FaultSpec(kind=kind),))) as http:
            with pytest.raises(ConnectionDropped):
                await http.post(ACCOUNTS, json={"Name": "A"})
            audit = (await http.get("/_mock/audit")).json()
            assert audit["companies"].get("1001", {"rows": 0})["rows"] == booked
            assert audit["dropped"] == 1

    run(main)


@pytest.mark.parametrize(
    ("spec", "status", "body"),
    [
        (FaultSpec(kind="status", status=503, retry_after_s=7), 503, b'{"error"'),
        (FaultSpec(kind="status", status=429, retry_after_s=7), 429, b""),
        (FaultSpec(kind="html-200"), 200, b"<!DOCTYPE html>"),
        (FaultSpec(kind="empty"), 200, b""),
    ],
)
def test_an_answer_in_place_of_the_work(run: Any, client: Any, spec: FaultSpec, status: int, body: bytes) -> None:
    """Nothing is booked, and Retry-After is sent where it is given."""

    async def main() -> None:
        async with client(Scenario(faults=(spec,))) as http:
            answer = await http.post(ACCOUNTS, json={"Name": "A"})
            assert answer.status_code == status
            assert answer.content.startswith(body) if body else answer.content == b""
            assert answer.headers.get("retry-after") == (None if spec.retry_after_s is None else "7")
            assert (await http.get("/_mock/rows?company=1001")).json()["codes"] == []

    run(main)


def test_a_late_commit_is_seen_when_its_time_has_come(virtual: Any, client: Any) -> None:
    """No answer, nothing booked, and seconds later the row is there."""

    async def main() -> list[int]:
        async with client(Scenario(faults=(FaultSpec(kind="late-commit", after_s=5.0),))) as http:
            with pytest.raises(ConnectionDropped):
                await http.post(ACCOUNTS, json={"Name": "A"})
            seen = []
            for _ in range(2):
                await anyio.sleep(3.0)
                seen.append(len((await http.get("/_mock/rows?company=1001")).json()["codes"]))
            return seen

    assert virtual(main) == [0, 1]


def test_a_caller_that_gives_up_has_its_row_booked_all_the_same(virtual: Any, client: Any) -> None:
    """A time-out in the middle of the service is no refusal."""
    scenario = Scenario(latency=LatencySpec(insert=Cost(call_s=10.0)))

    async def main() -> list[int]:
        async with client(scenario) as http:
            with anyio.move_on_after(2.0):
                await http.post(ACCOUNTS, json={"Name": "A"})
            seen = []
            for until in (9.0, 11.0):
                await anyio.sleep_until(until)
                seen.append(len((await http.get("/_mock/rows?company=1001")).json()["codes"]))
            return seen

    assert virtual(main) == [0, 1]


def test_a_slow_call_is_slow_and_answered(virtual: Any, client: Any) -> None:
    """It takes its extra time and ends well."""

    async def main() -> tuple[int, float]:
        async with client(Scenario(faults=(FaultSpec(kind="slow", after_s=4.0),))) as http:
            answer = await http.post(ACCOUNTS, json={"Name": "A"})
            return answer.status_code, anyio.current_time()

    assert virtual(main) == (201, 4.0)
