"""The scenario `seeds` gives the published figures again."""

from collections import deque
from typing import Any

import anyio
import pytest

from mock_server.clock import Clock
from mock_server.latency import Latency
from mock_server.scenario import Endpoint, load_scenario

XML_CALLS = (*[91] * 10, 90)
PUBLISHED = [
    pytest.param("insert", 1, 1, (1,) * 1000, 13_043, id="EI1"),
    pytest.param("batch", 1, 1, (250,) * 4, 27_481, id="EB1"),
    pytest.param("xml", 1, 1, XML_CALLS, 39_130, id="EX1"),
    pytest.param("batch", 10, 100, (25,) * 4, 204_933, id="EB10"),
    pytest.param("batch", 32, 100, (25,) * 4, 193_202, id="EB32"),
    pytest.param("batch", 100, 100, (25,) * 4, 189_806, id="EB100"),
]


@pytest.mark.parametrize(("mode", "clients", "companies", "calls", "rows_per_hour"), PUBLISHED)
def test_a_published_run_comes_out_within_three_percent(
    virtual: Any, mode: Endpoint, clients: int, companies: int, calls: tuple[int, ...], rows_per_hour: int
) -> None:
    """Clients take the companies in turn, one call in flight in a company."""

    async def main() -> float:
        scenario = load_scenario("seeds")
        clock = Clock()
        clock.start()
        latency = Latency(scenario.latency, clock=clock, seed=scenario.seed, companies={})
        queue = deque((scenario.first_company + place, 0) for place in range(companies))

        async def client() -> None:
            while queue:
                company, number = queue.popleft()
                await latency.serve(company, mode, rows=calls[number], unchanged=0, abandoned=lambda _: None)
                if number + 1 < len(calls):
                    queue.append((company, number + 1))

        async with anyio.create_task_group() as tasks:
            for _ in range(clients):
                tasks.start_soon(client)
        return companies * sum(calls) / clock.now_s() * 3600

    assert virtual(main) == pytest.approx(rows_per_hour, rel=0.03)
