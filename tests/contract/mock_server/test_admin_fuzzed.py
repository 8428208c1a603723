"""Whatever is asked of the admin, it does not fail."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest


def test_schemathesis_finds_no_failure(url: str, tmp_path: Path) -> None:
    """Requests drawn from the admin's own description, right and wrong ones: never a 500."""
    pytest.importorskip("schemathesis", reason="schemathesis is not installed (pip install 'saasload[dev]')")
    command = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{url}/_mock/openapi.json", "--url", url, "--checks",
        "not_a_server_error", "--phases", "coverage,fuzzing", "--max-examples", "5", "--seed", "7",
        "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=100, check=False, cwd=tmp_path)

    assert done.returncode == 0, done.stdout.decode()[-3000:]
    assert httpx.get(f"{url}/_mock/stats", trust_env=False).json()["internal_errors"] == 0
