"""Real processes that share one budget against a real mock: nothing is refused, and hardly anything is given away."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).parent / "worker.py"
SCENARIO = """
companies = 2
[limits]
calls_per_minute = 60
[latency]
slots = 100
per_company = 100
read_s = 1.0
"""
SCALE = 24.0
WINDOWS = 4
LASTS_S = (WINDOWS + 0.2) * 60.0 / SCALE


def _load(folder: Path, processes: int, **told: object) -> list[dict[str, Any]]:
    """Let so many loaders send for a while; return what each says."""
    (folder / "limited.toml").write_text(SCENARIO)
    mock = [sys.executable, "-m", "mock_server", "--port", "0", "--announce", "--die-with-stdin", "--time-scale"]
    mock += [str(SCALE), "--scenario", str(folder / "limited.toml")]
    with subprocess.Popen(mock, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        words = json.dumps({"url": url, "scale": SCALE, "companies": [1001, 1002], "lanes": 3} | told)
        command = [sys.executable, str(WORKER), words]
        loaders = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for loader in loaders:
            assert loader.stdout is not None
            assert loader.stdout.readline() == "ready\n"
        for loader in loaders:
            assert loader.stdin is not None
            loader.stdin.write("go\n")
            loader.stdin.flush()
        said = [json.loads(loader.communicate(timeout=60)[0].splitlines()[-1]) for loader in loaders]
        assert server.stdin is not None
        server.stdin.close()
    return said


@pytest.mark.parametrize("budget", ["sqlite", "redis"])
def test_four_processes_use_all_of_a_minute_limit_and_no_more(
    budget: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """60 calls a minute and company: each whole minute of the clock holds 60 of them, within 3 %."""
    where = str(tmp_path / "budgets") if budget == "sqlite" else request.getfixturevalue("redis_server").url
    (tmp_path / "budgets").mkdir()

    said = _load(tmp_path, 4, budget=where, kind="fixed", lasts_s=LASTS_S)

    assert sum(one["refused"] for one in said) == 0
    assert all(one["accepted"] > 0 for one in said)
    minutes = sum((Counter(one["minutes"]) for one in said), Counter[str]())
    for company in ("1001", "1002"):
        counted = [minutes[key] for key in sorted(minutes) if key.startswith(company)]
        # It begins and ends within a minute, and calls on the wire at the first boundary count on both sides.
        whole = counted[2:-1]
        assert len(whole) >= WINDOWS - 2
        assert max(counted) <= 60
        # The median one: where other programs have the cores for a second, that is most of a minute here.
        assert statistics.median(whole) >= 0.97 * 60
