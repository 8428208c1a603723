"""A disk that is full, or that cannot be written, at each stage of a run."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from saasload.sample import write_sample

from .conftest import PUSH, RESUME, Place, Server, to


@pytest.fixture
def small_disk(place: Place) -> Iterator[Path]:
    """Give a file system of one mebibyte in the place of the runs' folder."""
    runs = place.folder / "runs"
    runs.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or umount is None:
        pytest.skip("only root can mount a small file system")
    if subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(runs)], capture_output=True, check=False
    ).returncode:
        pytest.skip("no file system can be mounted here")
    yield runs
    for process in place.running:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
            process.communicate()
    subprocess.run([umount, "-l", str(runs)], check=True)


def fill(folder: Path, *, leave: int) -> Path:
    """Fill a file system but for some bytes."""
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    # the run writes meanwhile, so the last piece may find less room than there was
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        for _ in range(max(0, free - leave) // 512):
            file.write(bytes(512))
    return ballast


def test_a_disk_that_fills_up_while_spooling_stops_the_run_and_it_goes_on_with_room(
    place: Place, serve: Callable[..., Server], small_disk: Path
) -> None:
    """Nothing was sent: one line, exit code 3, no half a spool; the run says how it goes on, and does."""
    server = serve()
    write_sample(place.folder / "rows.parquet", rows=1_500, companies=3)
    ballast = fill(small_disk, leave=200_000)

    ran = place.run(*PUSH, *to(server, "xml", per_call=100))

    assert (ran.code, len(ran.lines)) == (3, 1)
    assert "no space left" in ran.err.lower()
    assert "make room, then go on with it: saasload resume run" in ran.err
    assert server.booked() == (0, 0)
    assert not list((small_disk / "run").glob("spool*"))
    ballast.unlink()
    again = place.run(*RESUME)
    assert (again.code, again.report["accepted"], server.booked()) == (0, 1_500, (1_500, 0))


def test_a_disk_without_room_for_a_journal_begins_no_run(
    place: Place, serve: Callable[..., Server], small_disk: Path
) -> None:
    """Exit code 2, one line, no folder left; with room the same push works."""
    server = serve()
    ballast = fill(small_disk, leave=0)

    ran = place.run(*PUSH, *to(server))

    assert (ran.code, len(ran.lines), server.booked()) == (2, 1, (0, 0))
    assert [path.name for path in small_disk.iterdir()] == ["ballast"]
    ballast.unlink()
    assert place.run(*PUSH, *to(server)).code == 0


def test_a_disk_that_fills_up_in_mid_run_stops_it_and_it_goes_on_with_room(
    place: Place, serve: Callable[..., Server], small_disk: Path
) -> None:
    """The journal has no room: nothing more is sent, one line, exit code 3; then the rest goes, nothing twice."""
    server = serve()
    process = place.start(*PUSH, *to(server))
    server.wait_for(20)
    ballast = fill(small_disk, leave=0)
    ran = place.end(process)

    booked, twice = server.booked()
    assert (ran.code, twice) == (3, 0)
    assert booked < 120
    assert "full" in ran.report["stopped"] or "no space left" in ran.report["stopped"]
    assert len([line for line in ran.lines if "stopped early" in line]) == 1
    assert not (small_disk / "run" / "accepted.parquet").exists()
    ballast.unlink()
    again = place.run(*RESUME)
    assert (again.code, server.booked()) == (0, (120, 0))
    assert len(place.accepted()) == 120
    assert not list((small_disk / "run").glob("*.part"))


def test_a_disk_that_is_full_at_the_end_keeps_the_outcomes(
    place: Place, serve: Callable[..., Server], small_disk: Path
) -> None:
    """A resume that finds no room for its files says so and can be repeated."""
    server = serve()
    process = place.start(*PUSH, *to(server))
    server.wait_for(20)
    process.send_signal(signal.SIGTERM)
    assert place.end(process).code == 143
    before = (small_disk / "run" / "accepted.parquet").read_bytes()
    ballast = fill(small_disk, leave=0)

    full = place.run(*RESUME)

    assert full.code in {2, 3}
    assert server.booked()[1] == 0
    assert (small_disk / "run" / "accepted.parquet").read_bytes() == before
    ballast.unlink()
    assert place.run(*RESUME).code == 0
    assert server.booked() == (120, 0)


def test_a_file_that_may_not_grow_is_a_full_disk(place: Place, serve: Callable[..., Server]) -> None:
    """A limit on the size of files, as a quota sets it: the journal stops growing, the run stops and goes on later."""
    server = serve()

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, resource.RLIM_INFINITY))

    ran = place.run_process(*PUSH, *to(server), limit=limited)

    assert ran.code == 3, ran.err
    assert 0 < server.booked()[0] < 120
    assert "journal.db" in ran.report["stopped"]
    again = place.run(*RESUME)
    assert (again.code, server.booked()) == (0, (120, 0))
    assert pq.read_metadata(place.folder / "runs" / "run" / "accepted.parquet").num_rows == 120


def test_a_run_folder_on_a_read_only_disk_is_said_before_anything_is_sent(
    place: Place, serve: Callable[..., Server], small_disk: Path
) -> None:
    """Exit code 2, one line that names the folder, no call."""
    subprocess.run(["/usr/bin/env", "mount", "-o", "remount,ro", str(small_disk)], check=True)
    server = serve()

    ran = place.run(*PUSH, *to(server))

    assert (ran.code, len(ran.lines)) == (2, 1)
    assert "runs/run" in ran.err
    assert "read-only file system" in ran.err
    assert server.audit()["calls"] == 0
