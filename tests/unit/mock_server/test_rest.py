"""REST in process, on asyncio and on trio."""

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mock_server.entities import ACCOUNT
from mock_server.scenario import CompanySpec, LatencySpec, LimitSpec, Scenario

ACCOUNTS = "/api/v1/1001/crm/Accounts"


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces of 400 bytes and does not say how many."""

    def __init__(self, number: int) -> None:
        """Take how many."""
        self.left = number

    def __aiter__(self) -> "Pieces":
        """Be read once."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece."""
        if not self.left:
            raise StopAsyncIteration
        self.left -= 1
        return b"x" * 400


def code(number: int) -> str:
    """Pad a code as the platform does."""
    return str(number).rjust(18)


def test_a_row_is_created_read_changed_and_deleted(run: Any, client: Any) -> None:
    """The life of one account, with the status of each step."""

    async def main() -> None:
        async with client() as http:
            made = await http.post(ACCOUNTS, json={"Code": code(7), "Name": "Bakery", "Country": "NL"})
            row = made.json()["d"]
            address = f"{ACCOUNTS}(guid'{row['ID']}')"
            assert (made.status_code, row["Code"]) == (201, code(7))
            assert set(row) == {"__metadata", "ID", "Code"}
            assert made.headers["x-mock-time-scale"] == "1"

            changed = await http.put(address, json={"City": "Delft", "StartDate": "2014-02-12T00:00:00"})
            read = (await http.get(address)).json()["d"]
            assert (changed.status_code, changed.content) == (204, b"")
            assert (read["Name"], read["City"], read["Country"]) == ("Bakery", "Delft", "NL ")
            assert read["StartDate"] == "/Date(1392163200000)/"
            assert read["__metadata"]["uri"] == f"http://mock{address}"

            assert (await http.delete(address)).status_code == 204
            assert (await http.get(address)).status_code == 404
            assert (await http.put(address, json={})).status_code == 403

    run(main)


@pytest.mark.parametrize(
    ("prefer", "status", "keys"),
    [("return=representation", 201, {"Name", "City", "Division"}), ("return=minimal", 204, set())],
)
def test_the_client_chooses_how_much_comes_back(
    run: Any, client: Any, prefer: str, status: int, keys: set[str]
) -> None:
    """All properties, or nothing but the address."""

    async def main() -> None:
        async with client() as http:
            made = await http.post(ACCOUNTS, json={"Name": "A"}, headers={"Prefer": prefer})
            assert made.status_code == status
            assert "guid'" in made.headers["location"]
            assert keys <= set(made.json()["d"]) if keys else made.content == b""

    run(main)


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (b'{"Code": "1"}', 400, "Mandatory: Name"),
        (b'{"Name": "A", "Code": "9"}', 500, "Data already exists: Code"),
        (b'{"Name": "%b"}' % (b"n" * 51), 400, "Too long: Name (maximum 50)"),
        (b'{"Name": ', 400, "Error processing request stream."),
        (b"[1]", 400, "Error processing request stream."),
        (b'"\xff"', 400, "Error processing request stream."),
    ],
)
def test_a_bad_row_is_refused(run: Any, client: Any, content: bytes, status: int, says: str) -> None:
    """The platform's status and its envelope of errors."""

    async def main() -> None:
        async with client() as http:
            await http.post(ACCOUNTS, json={"Name": "first", "Code": "9"})
            answer = await http.post(ACCOUNTS, content=content)
            error = answer.json()["error"]
            assert answer.status_code == status
            assert error["code"] == ""
            assert error["message"]["value"].startswith(says)

    run(main)


def test_only_a_padded_code_is_found(run: Any, client: Any) -> None:
    """The platform's trap: an unpadded filter silently finds nothing."""

    async def main() -> None:
        async with client() as http:
            for number in range(3):
                await http.post(ACCOUNTS, json={"Code": str(number), "Name": f"N{number}"})

            async def found(where: str) -> list[str]:
                answer = await http.get(ACCOUNTS, params={"$filter": where, "$select": "Name"})
                return [row["Name"] for row in answer.json()["d"]["results"]]

            assert await found(f"Code eq '{code(1)}'") == ["N1"]
            assert await found("Code eq '1'") == []
            assert await found(f"Code eq '{code(2)}' or Code eq '0' or Code eq '{code(1)}'") == ["N1", "N2"]
            assert await found("Name ne 'N1'") == ["N0", "N2"]
            assert (await http.get(f"{ACCOUNTS}/$count")).text == "3"

    run(main)


def test_lists_come_in_pages(run: Any, client: Any) -> None:
    """60 a page with a link to the next; the bare array where only $top is asked for."""

    async def main() -> None:
        async with client() as http:
            for number in range(130):
                await http.post(ACCOUNTS, json={"Code": str(number), "Name": "n"})
            seen: list[str] = []
            sizes: list[int] = []
            address: str | None = f"{ACCOUNTS}?$select=Code"
            while address:
                page = (await http.get(address)).json()["d"]
                sizes.append(len(page["results"]))
                seen += [row["Code"].strip() for row in page["results"]]
                address = page.get("__next")
            assert sizes == [60, 60, 10]
            assert seen == [str(number) for number in range(130)]

            bare = (await http.get(f"{ACCOUNTS}?$top=2&$skip=1&$orderby=Code desc")).json()["d"]
            counted = (await http.get(f"{ACCOUNTS}?$top=2&$inlinecount=allpages")).json()["d"]
            assert [row["Code"].strip() for row in bare] == ["128", "127"]
            assert (counted["__count"], len(counted["results"])) == ("130", 2)

            page = (await http.get(f"{ACCOUNTS}?$top=61")).json()["d"]
            rest = (await http.get(page["__next"])).json()["d"]
            assert (len(page["results"]), len(rest["results"]), "__next" in rest) == (60, 1, False)

    run(main)


def test_companies_are_listed(run: Any, client: Any) -> None:
    """By either address, filtered, and the same in each run."""

    async def main() -> None:
        async with client(Scenario(archived=2)) as http:
            both = [(await http.get(f"/api/v1/{at}/system/Divisions?$top=9")).json()["d"] for at in ("current", 1001)]
            where = {"$filter": "Status eq 1", "$inlinecount": "allpages", "$top": "1"}
            active = (await http.get("/api/v1/current/system/Divisions", params=where)).json()["d"]
            dutch = (await http.get("/api/v1/current/system/Divisions?$filter=Country eq 'NL'&$top=60")).json()["d"]
            me = (await http.get("/api/v1/current/Me?$select=CurrentDivision")).json()["d"]["results"][0]
            assert both[0] == both[1]
            assert [row["Code"] for row in both[0]] == list(range(1001, 1010))
            assert active["__count"] == "100"
            assert 30 < len(dutch) < 70
            assert me["CurrentDivision"] == 1001
            assert (await http.post("/api/v1/1101/crm/Accounts", json={})).headers["reason"] == "DivisionBlocked"

    run(main)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/99/crm/Accounts", 403),
        ("/api/v1/1001/crm/accounts", 404),
        ("/api/v1/1001/CRM/Accounts", 404),
        ("/api/v1/1001/current/Me", 404),
        ("/docs/XMLUpload.aspx", 404),
    ],
)
def test_what_is_not_there_is_not_found(run: Any, client: Any, path: str, status: int) -> None:
    """Paths are case-sensitive, and an unknown company is forbidden."""

    async def main() -> None:
        async with client() as http:
            answer = await http.get(path)
            assert answer.status_code == (405 if path.startswith("/docs") else status)
            assert (answer.headers.get("reason") == "NoDivisionAccess") is (status == 403)

    run(main)


def test_a_company_is_called_what_the_scenario_says(run: Any, client: Any) -> None:
    """One name is given, the others stay as drawn."""

    async def main() -> None:
        lists = []
        for own in ({}, {1002: CompanySpec(name="Seeds & Sons")}):
            async with client(Scenario(companies=3, company=own)) as http:
                rows = (await http.get("/api/v1/current/system/Divisions?$top=9")).json()["d"]
                lists.append([row["Description"] for row in rows])
        assert lists[1] == [lists[0][0], "Seeds & Sons", lists[0][2]]

    run(main)


def test_no_token_no_entry(run: Any, client: Any) -> None:
    """A wrong token is refused, with JSON that says so."""

    async def main() -> None:
        async with client(token="wrong") as http:  # noqa: S106 - no secret
            answer = await http.get(ACCOUNTS)
            assert answer.status_code == 401
            assert answer.json()["error"]["message"]["value"]

    run(main)


def test_a_code_may_be_booked_twice_where_the_scenario_lets_it(run: Any, client: Any) -> None:
    """So that an audit can show what a careless loader does."""

    async def main() -> None:
        async with client(Scenario(unique_code=False)) as http:
            for _ in range(2):
                assert (await http.post(ACCOUNTS, json={"Code": "1", "Name": "A"})).status_code == 201
            audit = (await http.get("/_mock/audit?key=Code")).json()
            both = await http.get(ACCOUNTS, params={"$filter": f"Code eq '{code(1)}'"})
            assert audit["companies"]["1001"] == {"rows": 2, "distinct": 1, "twice": 1}
            assert len(both.json()["d"]["results"]) == 2

    run(main)


def test_limits_are_told_and_kept(run: Any, client: Any) -> None:
    """Six headers on a normal reply, an empty 429 after the limit, and the way back in the mock's own time."""

    async def main() -> None:
        scenario = Scenario(limits=LimitSpec(calls_per_minute=2, retry_after=True))
        async with client(scenario, epoch0_s=1_000_000_000.0 // 60 * 60) as http:
            first = await http.post(ACCOUNTS, json={"Name": "A"})
            await http.post(ACCOUNTS, json={"Name": "B"})
            refused = await http.post(ACCOUNTS, json={"Name": "C"})
            other = await http.post("/api/v1/1002/crm/Accounts", json={"Name": "C"})
            assert first.headers["x-ratelimit-minutely-remaining"] == "1"
            assert first.headers["x-ratelimit-remaining"] == "4999"
            assert (refused.status_code, refused.content) == (429, b"")
            assert "x-ratelimit-limit" not in refused.headers
            assert 59 <= int(refused.headers["retry-after"]) <= 60
            assert other.status_code == 201

            await http.post(ACCOUNTS, json={"Name": "too early"})
            audit = (await http.get("/_mock/audit?key=Code")).json()
            assert (audit["calls"], audit["refused"], audit["early"], audit["errors"]) == (5, 2, 1, 0)

    run(main)


def test_a_body_that_is_too_large_is_refused(run: Any, client: Any) -> None:
    """Declared or found out while reading."""

    async def main() -> None:
        async with client(Scenario(max_body_bytes=1000)) as http:
            assert (await http.post(ACCOUNTS, content=b"x" * 1001)).status_code == 413
            headers = {**http.headers, "Host": "mock"}
            request = httpx.Request("POST", f"http://mock{ACCOUNTS}", headers=headers, stream=Pieces(4))
            assert (await http.send(request)).status_code == 413

    run(main)


def test_the_admin_speaks_with_this_machine_only(run: Any, client: Any) -> None:
    """Health, stats, rows, calls and reset; not for a web page of somebody else."""

    async def main() -> None:
        async with client(Scenario(latency=LatencySpec())) as http:
            await http.post(ACCOUNTS, json={"Code": "5", "Name": "A"})
            assert (await http.get("/_mock/health")).json()["status"] == "ok"
            assert (await http.get("/_mock/stats")).json()["companies"]["1001"]["rows"] == 1
            assert (await http.get("/_mock/rows?company=1001")).json()["codes"] == ["5"]
            assert '"endpoint":"insert"' in (await http.get("/_mock/calls")).text
            assert (await http.get("/_mock/health", headers={"Origin": "http://evil"})).status_code == 403
            assert (await http.post("/_mock/reset")).json() == {"status": "reset"}
            assert (await http.get("/_mock/audit")).json()["companies"] == {}
            assert (await http.get("/_mock/what")).status_code == 404

    run(main)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=60), st.lists(st.integers(), max_size=2), st.sampled_from(["/Date(1)/", "2026-01-31", "1.5", "x"]),
)  # fmt: skip
ROWS = st.dictionaries(st.sampled_from([*sorted(ACCOUNT.known), "Unknown"]), VALUES, max_size=8)


@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    row=ROWS,
    change=ROWS,
    where=st.sampled_from([*sorted(ACCOUNT.known)]),
    literal=st.sampled_from(["1", "'x'", "null", "datetime'2026-01-31'"]),
)
def test_no_row_makes_the_server_fail(
    client: Any, virtual: Any, row: dict[str, object], change: dict[str, object], where: str, literal: str
) -> None:
    """Whatever a row holds is booked or refused, and what is booked can be read, changed and searched."""

    async def main() -> None:
        async with client() as http:
            made = await http.post(ACCOUNTS, json=row | {"Name": "A"})
            await http.post(ACCOUNTS, json=row)
            assert made.status_code in {201, 400}
            if made.status_code == 201:
                address = f"{ACCOUNTS}(guid'{made.json()['d']['ID']}')"
                assert (await http.put(address, json=change)).status_code in {204, 400, 500}
                assert (await http.get(address)).status_code == 200
            for order in ("asc", "desc"):
                params = {"$filter": f"{where} ge {literal}", "$orderby": f"{where} {order}"}
                assert (await http.get(ACCOUNTS, params=params)).status_code == 200
            assert (await http.get("/_mock/stats")).json()["internal_errors"] == 0

    virtual(main)
