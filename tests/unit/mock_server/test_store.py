"""The store: what is booked outlives the process."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from mock_server.app import create_app
from mock_server.scenario import LimitSpec, OAuthSpec, Scenario
from mock_server.store import Store, StoreError

API = "/api/v1/1001"
SCENARIO = Scenario(limits=LimitSpec())


def client_of(path: Path, scenario: Scenario = SCENARIO) -> httpx.AsyncClient:
    """Start the mock over a file."""
    app = create_app(scenario, store=Store(path, seed=scenario.seed))
    headers = {"Authorization": f"Bearer {scenario.token}"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://mock", headers=headers)


def test_books_are_as_they_were(run: Any, tmp_path: Path) -> None:
    """Rows, changes, deletions, lines and ids, though the process ended without a word."""
    path = tmp_path / "books.db"

    async def main() -> None:
        async with client_of(path) as http:
            ids = [
                (await http.post(f"{API}/crm/Accounts", json={"Name": f"N{n}", "Code": str(n)})).json()["d"]["ID"]
                for n in range(4)
            ]
            await http.put(f"{API}/crm/Accounts(guid'{ids[1]}')", json={"City": "Delft"})
            await http.delete(f"{API}/crm/Accounts(guid'{ids[2]}')")
            item = (await http.post(f"{API}/logistics/Items", json={"Code": "I", "Description": "d"})).json()["d"]["ID"]
            lines = [{"Item": item, "Quantity": 2}]
            row = {"Journal": "70", "OrderedBy": ids[0], "SalesInvoiceLines": lines}
            await http.post(f"{API}/salesinvoice/SalesInvoices", json=row)
            xml = b'<R><Accounts><Account code="9"><Name>X</Name></Account></Accounts></R>'
            await http.post("/docs/XMLUpload.aspx?Topic=Accounts&_Division_=1001", content=xml)
            questions = (f"{API}/crm/Accounts", f"{API}/salesinvoice/SalesInvoices?$expand=SalesInvoiceLines")
            before = [(await http.get(question)).json() for question in questions]
        async with client_of(path) as http:
            assert [(await http.get(question)).json() for question in questions] == before
            assert (await http.post(f"{API}/crm/Accounts", json={"Name": "N", "Code": "2"})).status_code == 201
            assert (await http.post(f"{API}/crm/Accounts", json={"Name": "N", "Code": "3"})).status_code == 500
            made = (await http.post(f"{API}/crm/Accounts", json={"Name": "N", "Code": "7"})).json()["d"]["ID"]
            assert made not in ids
            assert (await http.get("/_mock/rows?company=1001")).json()["codes"] == ["0", "1", "3", "9", "2", "7"]

    run(main)


def test_used_limits_and_tokens_are_as_they_were(run: Any, tmp_path: Path) -> None:
    """A day's calls stay used after an orderly end, and a refresh token is still the one."""
    path = tmp_path / "books.db"
    scenario = Scenario(limits=LimitSpec(), oauth=OAuthSpec())

    async def main() -> None:
        first = create_app(scenario, store=Store(path, seed=scenario.seed)).world
        assert first.limits is not None
        assert scenario.oauth is not None
        first.limits.charge(1001, "crm/Accounts", 60.0)
        code = first.door.new_code(scenario.oauth, "u", 0.0)
        first.door.redeem(scenario.oauth, code=code, redirect_uri="u", wall_s=0.0)
        first.remember_door()
        first.close()

        second = create_app(scenario, store=Store(path, seed=scenario.seed)).world
        assert second.limits is not None
        assert second.limits.left(1001, 60.0) == (59, 4999)
        assert second.door.state == first.door.state
        assert second.door.new_code(scenario.oauth, "u", 0.0) == first.door.new_code(scenario.oauth, "u", 0.0)

    run(main)


def test_a_reset_empties_the_file(run: Any, tmp_path: Path) -> None:
    """And another scenario goes on in it with its own seed."""
    path = tmp_path / "books.db"

    async def main() -> None:
        async with client_of(path) as http:
            await http.post(f"{API}/crm/Accounts", json={"Name": "A"})
            await http.put("/_mock/scenario", json={"seed": 99})
            await http.post(f"{API}/crm/Accounts", json={"Name": "B"})
        async with client_of(path, Scenario(seed=99)) as http:
            rows = (await http.get(f"{API}/crm/Accounts")).json()["d"]["results"]
            assert [row["Name"] for row in rows] == ["B"]

    run(main)


def test_a_file_of_another_seed_is_refused(tmp_path: Path) -> None:
    """Its ids would not be found again."""
    Store(tmp_path / "books.db", seed=1).close()

    with pytest.raises(StoreError, match="was begun with seed 1, and this is seed 2"):
        Store(tmp_path / "books.db", seed=2)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """In one line that names it."""
    path = tmp_path / "books.db"
    path.write_bytes(b"not a database" * 100)

    with pytest.raises(StoreError, match=r"books\.db: cannot be used as a database"):
        Store(path, seed=1)
