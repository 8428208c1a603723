"""The admin in process: the log, faults and clock at run time, scenarios, metrics, and its description."""

import json
import re
from typing import Any

import anyio
import pytest

from mock_server.admin.operations import OPERATIONS
from mock_server.admin.snapshot import Snapshots
from mock_server.scenario import Cost, FaultSpec, LatencySpec, LimitSpec, Scenario

ACCOUNTS = "/api/v1/1001/crm/Accounts"


def test_the_log_is_filtered(virtual: Any, client: Any) -> None:
    """By company, way to travel, status and time; the last ones only."""

    async def main() -> None:
        async with client() as http:
            for company in (1001, 1002, 1001):
                await http.post(f"/api/v1/{company}/crm/Accounts", json={"Name": "A"})
                await anyio.sleep(10)
            await http.post(ACCOUNTS, json={})
            await http.get(ACCOUNTS)

            async def found(query: str) -> list[tuple[int, str, int]]:
                lines = (await http.get(f"/_mock/calls?{query}")).text.splitlines()
                return [(line["company"], line["endpoint"], line["status"]) for line in map(json.loads, lines)]

            assert len(await found("")) == 5
            assert await found("company=1002") == [(1002, "insert", 201)]
            assert await found("status=400") == [(1001, "insert", 400)]
            assert await found("endpoint=read") == [(1001, "read", 200)]
            assert len(await found("since=15")) == 3
            assert await found("last=1") == [(1001, "read", 200)]
            assert await found("last=0") == []
            assert (await http.get("/_mock/calls?since=x")).status_code == 400

    virtual(main)


def test_faults_are_added_and_switched_at_run_time(run: Any, client: Any) -> None:
    """A new one hits at once, a switched-off one does not; one in another's way is refused."""

    async def main() -> None:
        async with client() as http:
            added = await http.post("/_mock/faults", json={"kind": "status", "status": 503})
            assert (added.status_code, added.json()["place"]) == (200, 0)
            assert (await http.post(ACCOUNTS, json={"Name": "A"})).status_code == 503
            assert (await http.post("/_mock/faults", json={"kind": "empty"})).status_code == 409
            assert (await http.put("/_mock/faults/0", json={"on": False})).json()["on"] is False
            assert (await http.post(ACCOUNTS, json={"Name": "A"})).status_code == 201
            assert (await http.post("/_mock/faults", json={"kind": "empty"})).status_code == 200
            assert (await http.put("/_mock/faults/0", json={"on": True})).status_code == 409
            listed = (await http.get("/_mock/faults")).json()
            assert [(one["spec"]["kind"], one["on"], one["hits"]) for one in listed] == [
                ("status", False, 1),
                ("empty", True, 0),
            ]

    run(main)


@pytest.mark.parametrize(
    ("question", "body", "status", "says"),
    [
        ("POST /_mock/faults", b'{"kind": "slwo"}', 400, "kind"),
        ("POST /_mock/faults", b"[", 400, "not JSON"),
        ("POST /_mock/faults", b"[]", 400, "not an object"),
        ("PUT /_mock/faults/9", b'{"on": true}', 404, "no such fault"),
        ("PUT /_mock/clock", b'{"time_scale": 0}', 400, "time_scale"),
        ("PUT /_mock/clock", b'{"time_scale": true}', 400, "time_scale"),
        ("PUT /_mock/scenario", b'{"companeis": 3}', 400, "did you mean companies?"),
        ("PUT /_mock/scenario?name=/etc/passwd", b"", 400, "name: there are"),
        ("GET /_mock/audit?entity=X", b"", 400, "Contacts"),
        ("GET /_mock/rows?entity=X", b"", 400, "Contacts"),
        ("GET /_mock/calls?last=x", b"", 400, "whole number"),
    ],
)
def test_a_wrong_question_is_answered(
    run: Any, client: Any, question: str, body: bytes, status: int, says: str
) -> None:
    """With what is wrong."""

    async def main() -> None:
        async with client(Scenario(faults=(FaultSpec(kind="slow", on=False),))) as http:
            answer = await http.request(*question.split(), content=body)
            assert answer.status_code == status
            assert says in answer.json()["error"]

    run(main)


def test_another_scenario_is_played(run: Any, client: Any) -> None:
    """By name, or as JSON; what one reads can be put back; books are empty then."""

    async def main() -> None:
        async with client() as http:
            await http.post(ACCOUNTS, json={"Name": "A"})
            before = (await http.get("/_mock/scenario")).json()
            assert (await http.put("/_mock/scenario?name=no-batch")).json()["scenario"] == "no-batch"
            assert (await http.get("/_mock/health")).json()["scenario"] == "no-batch"
            assert (await http.post("/api/v1/1001/crm/$batch")).status_code == 404
            assert (await http.put("/_mock/scenario", json=before)).status_code == 200
            assert (await http.get("/_mock/scenario")).json() == before
            assert (await http.get("/_mock/audit")).json()["companies"] == {}

    run(main)


def test_time_runs_faster_from_now_on(virtual: Any, client: Any) -> None:
    """What has passed stays passed, and replies say the new pace."""

    async def main() -> tuple[float, float, str]:
        async with client() as http:
            await http.get("/_mock/clock")
            await anyio.sleep(10)
            now = (await http.put("/_mock/clock", json={"time_scale": 50})).json()["now_s"]
            await anyio.sleep(1)
            later = (await http.get("/_mock/clock")).json()["now_s"]
            return now, later, (await http.get(ACCOUNTS)).headers["x-mock-time-scale"]

    now, later, scale = virtual(main)
    assert (now, later, scale) == (pytest.approx(10.0), pytest.approx(60.0), "50")


def test_metrics_are_what_prometheus_reads(run: Any, client: Any) -> None:
    """Each line is a comment or a sample, each family has a type, and the numbers are right."""
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+')

    async def main() -> None:
        async with client(Scenario(faults=(FaultSpec(kind="slow", every=2, after_s=0.0),))) as http:
            for _ in range(3):
                await http.post(ACCOUNTS, json={"Name": "A"})
            text = (await http.get("/metrics")).text
            assert (await http.get("/_mock/metrics")).text == text
            lines = text.splitlines()
            assert all(line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line) for line in lines)
            assert 'mock_calls_total{company="1001"} 3' in lines
            assert 'mock_booked_rows{company="1001",entity="Accounts"} 3' in lines
            assert 'mock_fault_hits_total{place="0",kind="slow"} 1' in lines
            assert 'mock_call_seconds_count{endpoint="insert"} 3' in lines
            assert 'mock_call_seconds_bucket{endpoint="insert",le="+Inf"} 3' in lines

    run(main)


def test_the_description_names_every_operation(run: Any, client: Any) -> None:
    """OpenAPI 3.1, with each address, method and schema that it refers to."""

    async def main() -> None:
        async with client() as http:
            document = (await http.get("/_mock/openapi.json")).json()
            assert document["openapi"] == "3.1.0"
            assert {(path, method.upper()) for path, one in document["paths"].items() for method in one} == {
                (one.path, one.method) for one in OPERATIONS
            }
            named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
            assert named <= set(document["components"]["schemas"])

    run(main)


def test_the_dashboard_comes_along(run: Any, client: Any) -> None:
    """One page with its script and its style, from this machine only."""

    async def main() -> None:
        async with client() as http:
            page = await http.get("/")
            assert page.headers["content-type"].startswith("text/html")
            for address in re.findall(r'(?:src|href)="(/[^"]+)"', page.text):
                assert (await http.get(address)).status_code == 200
            assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")
            assert (await http.get("/", headers={"Origin": "http://evil"})).status_code == 403

    run(main)


def test_a_snapshot_shows_what_goes_on(virtual: Any, client: Any) -> None:
    """Calls in flight by company, booked rows, quantiles, what is left of limits, and each call once."""
    spec = LatencySpec(insert=Cost(call_s=2.0))

    async def main() -> None:
        async with client(Scenario(companies=3, latency=spec, limits=LimitSpec())) as http:
            world = http._transport.app.world
            snapshots = Snapshots(world)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: http.post(ACCOUNTS, json={"Name": "A"}))
                await anyio.sleep(1)
                during = snapshots.take()
            after, again = snapshots.take(), snapshots.take()
            assert (during["in_flight"], during["companies"][0]["in_flight"], during["log"]) == (1, 1, [])
            first = after["companies"][0]
            assert (first["in_flight"], first["booked"], first["p50"], first["p95"]) == (0, 1, 2.0, 2.0)
            assert (first["left_minute"], first["left_day"]) == (59, 4999)
            assert (len(after["log"]), len(again["log"])) == (1, 0)
            world.reset()
            assert snapshots.take()["calls"] == 0

    virtual(main)
