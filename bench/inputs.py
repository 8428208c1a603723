"""Make what is sent: sample files, and ready-made requests for programs that only send."""

import argparse
import json
import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from saasload.model import Call, Company, Outcomes, Request
from saasload.profile import load_profile
from saasload.sample import write_sample
from saasload.source.partition import ByColumn
from saasload.source.readers import open_source
from saasload.source.spool import open_spool, write_spool
from saasload.wire import FORMATS
from saasload.wire.cut import cut
from saasload.wire.render import render

COMPANIES = 100


@dataclass(frozen=True, slots=True)
class Ready:
    """A request as it is sent, and how many rows it carries."""

    request: Request
    rows: int


def write_ready(file: Path, mode: str, out: Path) -> None:
    """Write the requests that a load of the file makes, companies in turn: heads as JSON, bodies beside them."""
    profile = load_profile("mock-unlimited")
    entity = profile.entity("Account")
    wire = FORMATS[mode](profile, entity, getattr(entity, mode))
    source = open_source(file, format=None)
    fields = {name: (name, spec) for name, spec in entity.fields.items() if name in source.schema.names}
    codes = [str(1001 + place) for place in range(COMPANIES)]
    spool_path = out.with_suffix(".arrow")
    write_spool(source, spool_path, ByColumn(source.schema, "company", companies=codes, known=codes))
    heads = []
    with open_spool(spool_path) as spool, out.with_suffix(".bodies").open("wb") as bodies:
        lanes: list[Iterator[Call | Outcomes]] = []
        for company in map(Company, codes):
            batches = spool.company_batches(company)
            fragments = render(batches, company, wire, fields, key=entity.key, chunk_rows=250)
            limits = {"max_rows": wire.max_rows, "max_bytes": wire.max_bytes, "overhead": wire.overhead}
            lanes.append(cut(fragments, company, **limits))
        for call in _in_turn(lanes):
            request = wire.request(call)
            bodies.write(request.body)
            heads.append([request.path, dict(request.headers), len(request.body), len(call.rows)])
    out.write_text(json.dumps(heads), encoding="utf-8")
    spool_path.unlink()


def _in_turn(lanes: list[Iterator[Call | Outcomes]]) -> Iterator[Call]:
    while lanes:
        left = []
        for lane in lanes:
            item = next(lane, None)
            if item is not None:
                left.append(lane)
            if isinstance(item, Call):
                yield item
        lanes = left


def read_ready(path: Path) -> list[Ready]:
    """Read what `write_ready` wrote."""
    ready, place = [], 0
    bodies = path.with_suffix(".bodies").read_bytes()
    for target, headers, size, rows in json.loads(path.read_text(encoding="utf-8")):
        ready.append(Ready(Request("POST", target, headers, bodies[place : place + size]), rows))
        place += size
    return ready


def uneven_quotas(rows: int, companies: int = COMPANIES) -> list[int]:
    """Share rows out as the peers' piece of work did: log-normal, 20 to 415 rows in a company of 10,000.

    >>> quotas = uneven_quotas(10_000)
    >>> sum(quotas), min(quotas), max(quotas)
    (10000, 20, 415)
    """
    bell = statistics.NormalDist()
    quotas = [20] * companies
    middle = 82.0
    while sum(quotas) < rows:
        middle += 0.05
        quotas = [
            round(min(415.0, max(20.0, middle * 2.718281828 ** (0.629 * bell.inv_cdf((place + 0.5) / companies)))))
            for place in range(companies)
        ]
    quotas[-1] = 415
    quotas[companies // 2] -= sum(quotas) - rows
    return quotas


def write_uneven(folder: Path) -> None:
    """Write 10,000 rows over 100 uneven companies, mixed and sorted, and the first 5,000 and 2,000 of each."""
    rng = random.Random(1)
    quotas = uneven_quotas(10_000)
    rng.shuffle(quotas)
    whole = folder / "whole.parquet"
    write_sample(whole, rows=415 * COMPANIES, companies=COMPANIES, order="sorted")
    kept = [415 * company + place for company, quota in enumerate(quotas) for place in range(quota)]
    mixed = list(kept)
    rng.shuffle(mixed)
    rows = pq.read_table(whole)
    whole.unlink()
    for order, places in (("mixed", mixed), ("sorted", kept)):
        for count in (2_000, 5_000, 10_000):
            pq.write_table(rows.take(pa.array(places[:count])), folder / f"{order}-{count}.parquet")


def main() -> None:
    """Make one kind of input; a program of its own, so that whoever measures stays small."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["sample", "ready", "uneven"])
    parser.add_argument("out", type=Path)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--mode")
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    if options.kind == "sample":
        write_sample(options.out, rows=options.rows, companies=COMPANIES)
    elif options.kind == "ready":
        write_ready(options.file, options.mode, options.out)
    else:
        write_uneven(options.out)


if __name__ == "__main__":
    main()
