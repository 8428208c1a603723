"""Spool a file by company and read it back: a program of its own, `python -m bench.spool FILE SPOOL`."""

import json
import sys
import time
from pathlib import Path

from saasload.source.partition import ByColumn
from saasload.source.readers import open_source
from saasload.source.spool import open_spool, write_spool


def main() -> None:
    """Print what it took."""
    file, path = map(Path, sys.argv[1:3])
    source = open_source(file, format=None)
    codes = [str(1001 + place) for place in range(100)]
    began = time.perf_counter()
    index = write_spool(source, path, ByColumn(source.schema, "company", companies=codes, known=codes))
    written = time.perf_counter()
    rows = 0
    with open_spool(path) as spool:
        for code in codes:
            rows += sum(batch.num_rows for batch in spool.company_batches(code))
    read = time.perf_counter()
    if rows != index.rows:
        message = f"{index.rows:,} rows written, {rows:,} read"
        raise RuntimeError(message)
    print(json.dumps({"write_s": written - began, "read_s": read - written, "bytes": path.stat().st_size}))
    path.unlink()


if __name__ == "__main__":
    main()
