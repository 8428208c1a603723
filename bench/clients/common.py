"""What the programs share: their arguments and their last line."""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = "mock-token"  # noqa: S105 - it opens nothing but the mock


def arguments() -> argparse.Namespace:
    """Read what to send, whereto, and how many calls at once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("mode", choices=["insert", "batch", "xml"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--parallel", type=int, default=10)
    return parser.parse_args()


@dataclass(slots=True)
class Watch:
    """Time and CPU from when it is made."""

    began: float = field(default_factory=time.perf_counter)
    cpu: float = field(default_factory=time.process_time)

    def say(self, *, calls: int, rows: int) -> None:
        """Print the figures."""
        duration_s, cpu_s = time.perf_counter() - self.began, time.process_time() - self.cpu
        print(json.dumps({"calls": calls, "rows": rows, "duration_s": duration_s, "cpu_s": cpu_s}))
