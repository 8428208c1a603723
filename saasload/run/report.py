"""A run's numbers: for programs, for people, and for the exit code."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from pathlib import Path

import orjson

from saasload.errors import RunFolderError
from saasload.model import Company, RowStatus
from saasload.policy.concurrency import Change
from saasload.run.book import Book, CompanyCount


class ExitCode(IntEnum):
    """How a run ended, as the shell sees it."""

    ACCEPTED = 0
    SOME_REJECTED = 1
    USAGE = 2
    STOPPED_EARLY = 3
    IN_DOUBT = 4
    INTERRUPTED = 130
    TERMINATED = 143


@dataclass(frozen=True, slots=True)
class Group:
    """Companies that ended alike."""

    name: str
    companies: int
    rows: int
    accepted: int
    rejected: int
    in_doubt: int
    unsent: int
    calls: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did. Durations are wall time; `target_*` are in the target's time, which a mock may run faster.

    `parallel` is what was set, or, where `parallel_found`, what the adaptive limit came to; `limit_changes` tells how.
    `waiting` says until when companies wait for a limit, where the run ended for that.
    read = accepted + rejected + in_doubt + unsent, and accepted = created + updated + unchanged.
    """

    run: str
    folder: str
    target: str
    entity: str
    mode: str
    parallel: int
    parallel_found: bool
    companies: int
    read: int
    accepted: int
    rejected: int
    in_doubt: int
    unsent: int
    created: int
    updated: int
    unchanged: int
    calls: int
    retries: int
    refused: int
    duration_s: float
    rows_per_hour: int
    cpu_s: float
    peak_rss_mb: float
    time_scale: float
    target_duration_s: float
    target_rows_per_hour: int
    stopped: str
    reasons: dict[str, int]
    groups: tuple[Group, ...]
    limit_changes: Sequence[Change]
    exit_code: int
    waiting: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> bytes:
        """Write it as one JSON object."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)

    def save(self, folder: Path) -> None:
        """Keep it in the run's folder, whole or not at all."""
        part = folder / "report.json.part"
        try:
            part.write_bytes(self.to_json())
            part.replace(folder / "report.json")
        except OSError as error:
            message = f"{folder / 'report.json'}: cannot be written: {os.strerror(error.errno or 0).lower()}"
            raise RunFolderError(message) from error


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows by what became of them."""

    read: int
    created: int
    updated: int
    unchanged: int
    rejected: int
    in_doubt: int

    @property
    def accepted(self) -> int:
        """Rows the target holds now."""
        return self.created + self.updated + self.unchanged

    @property
    def unsent(self) -> int:
        """Rows that never left, or that were certainly not executed."""
        return self.read - self.accepted - self.rejected - self.in_doubt


def count(read: int, outcomes: Counter[RowStatus]) -> Counts:
    """Sum up outcomes over the rows that were read."""
    return Counts(
        read,
        outcomes[RowStatus.CREATED],
        outcomes[RowStatus.UPDATED],
        outcomes[RowStatus.UNCHANGED],
        outcomes[RowStatus.REJECTED],
        outcomes[RowStatus.IN_DOUBT],
    )


def exit_code(counts: Counts, *, stopped: str, signal: int = 0) -> ExitCode:
    """Say how a run ended; what still has to be sent weighs more than what was refused.

    >>> exit_code(Counts(3, 2, 0, 0, 1, 0), stopped="")
    <ExitCode.SOME_REJECTED: 1>
    """
    if signal:
        return ExitCode.TERMINATED if signal == 15 else ExitCode.INTERRUPTED
    if stopped or counts.unsent:
        return ExitCode.STOPPED_EARLY
    if counts.in_doubt:
        return ExitCode.IN_DOUBT
    return ExitCode.SOME_REJECTED if counts.rejected else ExitCode.ACCEPTED


def groups(companies: dict[Company, CompanyCount]) -> tuple[Group, ...]:
    """Gather companies that ended alike, the best first."""
    found: dict[str, list[CompanyCount]] = {}
    for company in companies.values():
        found.setdefault(_ending(company), []).append(company)
    return tuple(_group(name, found[name]) for name in _ENDINGS if name in found)


_ENDINGS = ("complete", "some rejected", "some in doubt", "some unsent", "no rows")


def _ending(company: CompanyCount) -> str:
    if not company.rows:
        return "no rows"
    counts = count(company.rows, company.outcomes)
    if counts.unsent:
        return "some unsent"
    if counts.in_doubt:
        return "some in doubt"
    return "some rejected" if counts.rejected else "complete"


def _group(name: str, members: list[CompanyCount]) -> Group:
    total: Counter[RowStatus] = Counter()
    for member in members:
        total.update(member.outcomes)
    rows = sum(member.rows for member in members)
    counts = count(rows, total)
    calls = sum(member.calls for member in members)
    return Group(
        name, len(members), rows, counts.accepted, counts.rejected, counts.in_doubt, counts.unsent, calls
    )  # fmt: skip


def reasons(book: Book) -> dict[str, int]:
    """Count the reasons rows were rejected or are in doubt for, the commonest first."""
    return dict(Counter(note.reason for note in book.notes.values()).most_common())
