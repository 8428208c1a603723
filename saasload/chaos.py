"""A self-test: loads against a mock with seeded faults, killed at seeded moments, resumed until done, audited."""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq

from saasload.errors import TargetError
from saasload.profile import Mode
from saasload.run.report import ExitCode
from saasload.sample import write_sample

MOST_KILLS = 6
MOST_RESUMES = 60
ROUND_S = 300.0
ROWS_PER_CALL = 20
_MODES: tuple[Mode, ...] = ("insert", "batch", "xml")

# Each is rare enough to let a load end, and common enough to be met in every round.
_FAULTS = """
[[faults]]
kind = "drop-before"
probability = {p}
[[faults]]
kind = "drop-after"
probability = {p}
[[faults]]
kind = "status"
status = 503
probability = {p}
[[faults]]
kind = "status"
status = 429
retry_after_s = 3
probability = {p}
[[faults]]
kind = "html-200"
probability = {p}
[[faults]]
kind = "empty"
probability = {p}
[[faults]]
kind = "cut"
probability = {p}
[[faults]]
kind = "late-commit"
after_s = 8.0
probability = {p}
"""

_SCENARIO = """
description = "chaos"
seed = {seed}
companies = {companies}
[latency]
slots = 8
per_company = 1
jitter_sigma = 0.5
read_s = 0.02
insert = {{ call_s = 0.05, row_s = 0.01 }}
batch = {{ call_s = 0.2, row_s = 0.02 }}
xml = {{ call_s = 0.2, row_s = 0.02 }}
"""


@dataclass(frozen=True, slots=True)
class Round:
    """One load that was killed and resumed until it was done, and what the ledger says of it."""

    number: int
    seed: int
    mode: str
    rows: int
    kills: int
    resumes: int
    missing: int
    twice: int
    untrue: int
    complaint: str

    @property
    def good(self) -> bool:
        """Whether each row is there once, and each outcome is true."""
        return not (self.missing or self.twice or self.untrue or self.complaint)

    def line(self) -> str:
        """Put it into words."""
        found = (
            "each row there once, each outcome true"
            if self.good
            else (
                f"FAILED: {self.missing:,} missing, {self.twice:,} twice, {self.untrue:,} untrue; {self.complaint}; "
                f"again: saasload chaos --rounds 1 --seed {self.seed} --mode {self.mode}"
            )
        )
        return (
            f"round {self.number} (seed {self.seed}, {self.mode}): {self.rows:,} rows, {self.kills} kills, "
            f"{self.resumes} resumes: {found}"
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """How many rounds, of what size; `mode` None takes all in turn."""

    rounds: int
    seed: int
    rows: int
    companies: int
    mode: Mode | None
    time_scale: float = 50.0


def chaos(plan: Plan, say: Callable[[Round], None]) -> list[Round]:
    """Play the rounds; each is told as it ends. Raises TargetError where the mock server does not start."""
    rounds = []
    for number in range(plan.rounds):
        seed = plan.seed + number
        mode = plan.mode or _MODES[seed % len(_MODES)]
        folder = Path(tempfile.mkdtemp(prefix="saasload-chaos-"))
        try:
            played = _Player(plan, folder, random.Random(seed), mode).play(number + 1, seed)  # noqa: S311 to be repeated
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        rounds.append(played)
        say(played)
    return rounds


class _Player:
    """Plays one round."""

    def __init__(self, plan: Plan, folder: Path, rng: random.Random, mode: Mode) -> None:
        self.plan = plan
        self.folder = folder
        self.rng = rng
        self.mode = mode
        self.kills = 0
        self.resumes = 0

    def play(self, number: int, seed: int) -> Round:
        """Load, kill, resume, and audit."""
        source = self.folder / "customers.parquet"
        write_sample(source, rows=self.plan.rows, companies=self.plan.companies, seed=seed, skew=0.5)
        scenario = self.folder / "scenario.toml"
        scenario.write_text(
            _SCENARIO.format(seed=seed, companies=self.plan.companies)
            + _FAULTS.format(p=0.004 if self.mode == "insert" else 0.03)
        )
        with _mock(scenario, self.plan.time_scale) as url:
            complaint = self._until_done(source, url)
            missing, twice, untrue = self._audit(url) if not complaint else (0, 0, 0)
        return Round(
            number, seed, self.mode, self.plan.rows, self.kills, self.resumes, missing, twice, untrue, complaint
        )  # fmt: skip

    def _until_done(self, source: Path, url: str) -> str:
        """Run until a process ends by itself with nothing left to do; return what went wrong otherwise."""
        begin = [
            "push", str(source), "--to", url, "--profile", "mock-unlimited", "--mode", self.mode, "--run", "chaos",
            "--rows-per-call", "1" if self.mode == "insert" else str(ROWS_PER_CALL), "--deadline-s", "5",
        ]  # fmt: skip
        arguments: Sequence[str] = begin
        until = time.monotonic() + ROUND_S
        while self.resumes <= MOST_RESUMES and time.monotonic() < until:
            code, words = self._once(arguments, url)
            if code in {ExitCode.ACCEPTED, ExitCode.SOME_REJECTED}:
                return ""
            # The list of companies is asked for some times only; whoever is told to try again later does.
            later = code == ExitCode.USAGE and words.endswith("try again later")
            if code >= 0 and not later and code not in {ExitCode.STOPPED_EARLY, ExitCode.IN_DOUBT}:
                return f"exit code {code}: {words}"
            if "Traceback" in words:
                return f"a traceback: {words[-300:]}"
            begun = (self.folder / "runs" / "chaos" / "journal.db").exists()
            arguments = ["resume", "chaos", "--parallel", str(self.rng.choice((2, 5, 10)))] if begun else begin
            self.resumes += 1
        return "not done in time"

    def _once(self, arguments: Sequence[str], url: str) -> tuple[int, str]:
        """Run one process, killed at a moment drawn from the seed, if it lasts as long."""
        command = [sys.executable, "-m", "saasload", *arguments, "--runs", "runs", "--quiet"]
        errors = self.folder / "errors.txt"
        with errors.open("wb") as sink:
            process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=sink)
            if not (self._ends_first(process, url) if self.kills < MOST_KILLS else _ended(process, ROUND_S)):
                self.kills += 1
                process.kill()
            code = process.wait()
        return code, errors.read_text(errors="replace").strip()

    def _ends_first(self, process: "subprocess.Popen[bytes]", url: str) -> bool:
        """Wait for a moment of the process's start, or for so many calls more; True where it ends before."""
        if self.rng.random() < 0.2:
            return _ended(process, self.rng.uniform(0.0, 0.6))
        calls = self.plan.rows if self.mode == "insert" else self.plan.rows / ROWS_PER_CALL
        until = _calls(url) + self.rng.uniform(0.0, 0.7) * calls
        while _calls(url) < until:
            if _ended(process, 0.01):
                return True
        return _ended(process, self.rng.uniform(0.0, 0.02))

    def _audit(self, url: str) -> tuple[int, int, int]:
        """Compare the ledger with the source, and the files with the ledger."""
        companies = _json(f"{url}/_mock/audit?key=Code")["companies"].values()
        booked = sum(company["rows"] for company in companies)
        distinct = sum(company["distinct"] for company in companies)
        folder = self.folder / "runs" / "chaos"
        files = {
            name: pq.read_metadata(folder / f"{name}.parquet").num_rows
            for name in ("accepted", "rejected", "in_doubt", "unsent")
        }
        rows = pq.read_table(folder / "accepted.parquet", columns=["row"]).column("row").to_pylist()
        untrue = abs(files["accepted"] - booked) + len(rows) - len(set(rows)) + self.plan.rows - sum(files.values())
        return self.plan.rows - distinct, booked - distinct, abs(untrue) + files["in_doubt"] + files["unsent"]


@contextmanager
def _mock(scenario: Path, time_scale: float) -> Iterator[str]:
    command = [sys.executable, "-m", "mock_server", "--port", "0", "--announce", "--die-with-stdin",
               "--scenario", str(scenario), "--time-scale", str(time_scale)]  # fmt: skip
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        line = server.stdout.readline() if server.stdout is not None else b""
        if not line:
            message = "the mock server did not start; run `saasload mock` to see why"
            raise TargetError(message)
        yield json.loads(line)["url"]
    finally:
        server.kill()
        server.communicate()


def _ended(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Wait for the end of a process, for so long; tell whether it came."""
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _calls(url: str) -> int:
    return sum(company["calls"] for company in _json(f"{url}/_mock/stats")["companies"].values())


def _json(url: str) -> Any:
    with urlopen(url, timeout=30) as reply:  # noqa: S310 our own child, on loopback
        return json.loads(reply.read())
