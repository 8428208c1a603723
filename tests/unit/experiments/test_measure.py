"""Warm-up and drain are cut by rule, and a stall shows in all calls that it delayed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from saasload.errors import UsageError
from saasload.experiments.calls import Calls, read_calls
from saasload.experiments.measure import due, percentiles, steady, steady_window


def _workers(make: Callable[..., Calls], workers: int, calls: int, second: float = 1.0) -> Calls:
    """So many workers that each send so many calls of one second, one after another."""
    begin = [number * second for number in range(calls) for _ in range(workers)]
    return make(begin, [moment + second for moment in begin], rows=[10] * len(begin))


def test_the_window_is_from_the_nth_answer_to_the_last_start(make_calls: Callable[..., Calls]) -> None:
    """Four workers with ten calls of a second: from 1 s to 9 s."""
    window = steady_window(_workers(make_calls, 4, 10), 4)

    assert (window.begin, window.end, window.cut) == (1.0, 9.0, True)


def test_steady_throughput_is_that_of_the_workers(make_calls: Callable[..., Calls]) -> None:
    """Four workers with ten rows a second are forty rows a second, at the edges too."""
    assert steady(_workers(make_calls, 4, 10), 4).rows_per_s == pytest.approx(40.0)


def test_a_slow_start_and_a_long_tail_do_not_count(make_calls: Callable[..., Calls]) -> None:
    """First calls of five seconds and one of thirty at the end leave the pace as it is."""
    begin = [0.0, 0.0] + [5.0 + number for number in range(20) for _ in range(2)]
    end = [5.0, 5.0] + [moment + 1.0 for moment in begin[2:]]
    end[-1] += 29.0

    assert steady(make_calls(begin, end), 2).rows_per_s == pytest.approx(2.0, rel=0.06)


def test_too_few_calls_are_not_cut(make_calls: Callable[..., Calls]) -> None:
    """With fewer than three calls a worker the whole run counts."""
    found = steady(_workers(make_calls, 4, 2), 4)

    assert not found.window.cut
    assert found.rows_per_s == pytest.approx(40.0)
    assert len(found.response) == 8


def test_refused_calls_carry_no_rows(make_calls: Callable[..., Calls]) -> None:
    """What was answered with 429 is not throughput."""
    calls = make_calls([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0], rows=[5] * 4, status=[200, 429, 200, 200])

    assert steady(calls, 1).rows_per_s == pytest.approx(2.5)


def test_a_stall_counts_for_all_that_waited_behind_it(make_calls: Callable[..., Calls]) -> None:
    """One call of twenty seconds among calls of a tenth: by the clock of the schedule many are late."""
    lasted = [0.1] * 300
    lasted[150] = 20.0
    begin = np.concatenate([[0.0], np.cumsum(lasted)[:-1]])
    calls = make_calls(begin.tolist(), (begin + lasted).tolist())

    found = steady(calls, 1)

    assert percentiles(found.response).p95 == pytest.approx(0.1, rel=0.05)
    assert percentiles(found.from_due).p95 > 5.0
    assert (found.from_due >= found.response - 1e-9).all()


def test_an_even_run_is_on_time(make_calls: Callable[..., Calls]) -> None:
    """Without stalls both clocks tell the same."""
    calls = _workers(make_calls, 1, 50)

    found = steady(calls, 1)

    assert found.from_due == pytest.approx(found.response)
    assert due(calls.begin, found.window)[1:5] == pytest.approx(calls.begin[1:5])


def test_no_calls_have_no_percentiles() -> None:
    """Nothing measured is nothing, not an error."""
    assert percentiles(np.array([])).p99 == 0.0


def test_a_run_without_calls_is_said_in_one_line(tmp_path: Path) -> None:
    """A folder that is none, and a file that is none."""
    with pytest.raises(UsageError, match=r"no calls.parquet there"):
        read_calls(tmp_path)
    (tmp_path / "calls.parquet").write_bytes(b"no parquet")
    with pytest.raises(UsageError, match="cannot be read as the calls of a run"):
        read_calls(tmp_path)


def test_calls_are_read_in_the_order_they_began(tmp_path: Path) -> None:
    """Of one millisecond in the order they were answered; times count from the first."""
    table = pa.table(
        {
            "time": pa.array([5000, 2000, 2000], pa.timestamp("ms", tz="UTC")),
            "company": ["c", "b", "a"],
            "mode": ["xml", "xml", None],
            "rows": [3, 2, 1],
            "status": [200, 200, None],
            "ms": [100.0, 900.0, 400.0],
        }
    )
    pq.write_table(table, tmp_path / "calls.parquet")

    calls = read_calls(tmp_path)

    assert calls.company.tolist() == ["a", "b", "c"]
    assert calls.begin.tolist() == [0.0, 0.0, 3.0]
    assert calls.end.tolist() == pytest.approx([0.4, 0.9, 3.1])
    assert (calls.status.tolist(), calls.epoch_s, len(calls)) == ([0, 200, 200], 2.0, 3)
