"""Make a run that stopped with most of its rows settled: its folder, spool and journal."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from saasload.job import make_job
from saasload.model import ROW_COLUMN, Company, RowStatus, all_rows
from saasload.profile import load_profile
from saasload.run.folder import make_run_folder
from saasload.run.journal import Sending, Settled, create_journal
from saasload.source.fingerprint import fingerprint
from saasload.source.partition import ByColumn
from saasload.source.readers import open_source
from saasload.source.spool import Spool, open_spool, write_spool

ROWS_A_CALL = {"insert": 1, "batch": 250, "xml": 100}
UNSENT_OF = 10_000
"""One row in so many is left unsent."""

Records = list[Sending | Settled]


def write_run(file: Path, runs: Path, mode: str, url: str) -> None:
    """Write the run `halfway` as a process leaves it that was killed."""
    job = make_job(source=file, to=url, profile="mock-unlimited", mode=mode, runs=runs, run="halfway")
    folder = make_run_folder(runs, "halfway")
    profile = load_profile(job.profile)
    facts = {"job": job.facts(), "profile": profile.model_dump(mode="json"), "state": "sending", "to": url}
    journal = create_journal(folder, {**facts, "fingerprint": fingerprint(file).facts()})
    source = open_source(file, format=None)
    codes = [str(1001 + place) for place in range(100)]
    write_spool(source, folder / "spool.arrow", ByColumn(source.schema, "company", companies=codes, known=codes))
    with open_spool(folder / "spool.arrow") as spool:
        for records in _records(spool, mode):
            journal.write(records)
    journal.close()


def _records(spool: Spool, mode: str) -> Iterator[Records]:
    number, records = 0, Records()
    for code in spool.index.companies:
        for batch in spool.company_batches(code):
            rows = [row for row in batch.column(ROW_COLUMN).to_pylist() if row % UNSENT_OF]
            for start in range(0, len(rows), ROWS_A_CALL[mode]):
                some = rows[start : start + ROWS_A_CALL[mode]]
                number += 1
                outcomes = all_rows(some, RowStatus.CREATED)
                ids = ["5a1d0000-0000-4000-8000-000000000001"] * len(some)
                records.append(Sending(number, Company(code), mode, 1000, 500 * len(some), 1, some))
                records.append(Settled(number, 201, 150.0, "", type(outcomes)(outcomes.rows, outcomes.statuses, ids)))
                if len(records) >= 10_000:
                    yield records
                    records = Records()
    yield records


def main() -> None:
    """Write one; a program of its own, so that whoever measures stays small."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--url", required=True)
    options = parser.parse_args()
    write_run(options.file, options.runs, options.mode, options.url)


if __name__ == "__main__":
    main()
