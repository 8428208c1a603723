"""The dashboard in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SCENARIO = """
companies = 12
[limits]
calls_per_minute = 20
[[faults]]
kind = "drop-before"
on = false
"""


@pytest.fixture
def page() -> Iterator[Any]:
    """Open a page that keeps what its console complains of."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        opened = browser.new_page(viewport={"width": 1440, "height": 1200})
        opened.complaints = []
        opened.on("console", lambda said: opened.complaints.append(said.text) if said.type == "error" else None)
        opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
        yield opened
        browser.close()


@pytest.mark.filterwarnings("ignore")
def test_it_opens_moves_and_switches(served: Any, page: Any, tmp_path: Path) -> None:
    """Numbers follow a load, a fault is switched by a click, and nothing is complained of."""
    path = tmp_path / "practice.toml"
    path.write_text(SCENARIO)

    with served(path) as (http, _):
        page.goto(str(http.base_url))
        page.wait_for_selector("#state.live")
        assert page.locator(".cell").count() == 12
        assert page.inner_text("#scenario") == "practice"

        for number in range(25):
            http.post("/api/v1/1003/crm/Accounts", json={"Name": "A", "Code": str(number)})
        page.wait_for_function("document.querySelector('#booked').textContent === '20'")
        page.wait_for_function("document.querySelector('#refused').textContent === '5'")
        assert " / " in page.inner_text("#times")
        assert page.locator("#log tr").count() == 25
        assert page.locator("#log .pill.warn").count() == 5
        assert page.locator(".cell").nth(2).inner_text().split() == ["1003", "20"]
        assert "0 of 20" in page.inner_text("#limits")
        page.locator(".cell").nth(2).hover()
        assert "1003" in page.inner_text("#detail")
        page.click("[data-measure=refused]")
        assert page.locator(".cell").nth(2).inner_text().split() == ["1003", "5"]

        page.click(".switch")
        page.wait_for_selector(".switch[aria-checked=true]")
        assert http.get("/_mock/faults").json()[0]["on"] is True
        page.select_option("#kind", "slow")
        page.click("#add button")
        page.wait_for_function("document.querySelectorAll('.switch').length === 2")
        page.select_option("#scale", "50")
        page.wait_for_function("document.querySelector('#said').textContent === ''")
        page.click("#reset")
        page.wait_for_function("document.querySelector('#booked').textContent === '0'")
        assert http.get("/_mock/clock").json()["time_scale"] == 50
        page.click("#theme")
        assert page.complaints == []
