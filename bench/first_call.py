"""Say when a run's first call after a moment left, in seconds since 1970."""

import json
import sys
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

if __name__ == "__main__":
    times = pq.read_table(Path(sys.argv[1]), columns=["time"]).column("time").cast("int64")
    after = pc.filter(times, pc.greater(times, int(float(sys.argv[2]) * 1000)))
    print(json.dumps({"at": pc.min(after).as_py() / 1000.0}))
