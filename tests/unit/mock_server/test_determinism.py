"""The same seed gives the same order of events and the same bytes."""

from typing import Any

import anyio
import pytest

from mock_server.faults import ConnectionDropped
from mock_server.scenario import Scenario, load_scenario


async def load(http: Any) -> list[str]:
    """Send calls of four companies at once; return what was heard, in order."""
    heard: list[str] = []

    async def one(company: int) -> None:
        for number in range(20):
            row = {"Code": str(number), "Name": "A"}
            try:
                answer = await http.post(f"/api/v1/{company}/crm/Accounts", json=row)
                heard.append(f"{anyio.current_time():.9f} {company} {answer.status_code} {answer.text}")
            except ConnectionDropped:
                heard.append(f"{anyio.current_time():.9f} {company} dropped")

    async with anyio.create_task_group() as tasks:
        for company in range(1001, 1005):
            tasks.start_soon(one, company)
    return [*heard, (await http.get("/_mock/calls")).text, (await http.get("/_mock/audit")).text]


@pytest.mark.parametrize("name", ["rough", "maintenance", "lost-answers", "slows-down"])
def test_two_runs_are_alike_to_the_byte(virtual: Any, client: Any, name: str) -> None:
    """Jitter, faults, paces, ids and the order of answers."""

    async def main(seed: int) -> list[str]:
        async with client(load_scenario(name).model_copy(update={"seed": seed})) as http:
            return await load(http)

    first, second, other = (virtual(lambda seed=seed: main(seed)) for seed in (7, 7, 8))
    assert first == second
    assert first != other


def test_one_company_more_changes_no_other(client: Any, virtual: Any) -> None:
    """Its name, its ids, its pace and its faults are its own."""
    rough = load_scenario("rough")

    async def main(companies: int) -> Any:
        async with client(Scenario.model_validate(rough.model_dump() | {"companies": companies})) as http:
            await http.get("/_mock/clock")
            seen = []
            for number in range(40):
                try:
                    answer = await http.post("/api/v1/1002/crm/Accounts", json={"Code": str(number), "Name": "A"})
                    seen.append(f"{anyio.current_time():.9f} {answer.text}")
                except ConnectionDropped:
                    seen.append("dropped")
            return seen, (await http.get("/api/v1/current/system/Divisions?$top=3")).json()

    assert virtual(lambda: main(3)) == virtual(lambda: main(4))
