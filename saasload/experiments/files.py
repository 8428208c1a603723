"""Write what an experiment found: JSON, CSV, HTML and PNG in one folder."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from saasload.errors import RunFolderError
from saasload.experiments.curve import CurveResult
from saasload.experiments.document import cells_csv, curve_document, levels_csv, reproduction_document, to_json
from saasload.experiments.page import curve_page, reproduction_page
from saasload.experiments.png import write_png
from saasload.experiments.reproduce import Reproduction


def make_out(folder: Path) -> None:
    """Make the folder before hours are spent on what goes into it."""
    _guard(folder, lambda: folder.mkdir(parents=True, exist_ok=True))
    probe = folder / ".probe"
    _guard(folder, lambda: probe.write_bytes(b""))
    _guard(folder, probe.unlink)


def write_curve(folder: Path, result: CurveResult) -> tuple[Path, ...]:
    """Write a curve's files; return their paths."""
    where = f"scenario {result.plan.scenario} (simulated)" if result.simulated else str(result.plan.to)
    texts = {
        "curve.json": to_json(curve_document(result)),
        "curve.csv": levels_csv(result.curves).encode(),
        "curve.html": curve_page(result).encode(),
    }
    paths = _write(folder, texts)
    picture = folder / "curve.png"
    _guard(picture, lambda: write_png(picture, result.curves, title=f"Throughput: {where}"))
    return (*paths, picture)


def write_reproduction(folder: Path, result: Reproduction) -> tuple[Path, ...]:
    """Write the published table's files; return their paths."""
    texts = {
        "reproduce.json": to_json(reproduction_document(result)),
        "reproduce.csv": cells_csv(result.cells).encode(),
        "curve.csv": levels_csv([result.curve]).encode(),
        "reproduce.html": reproduction_page(result).encode(),
    }
    paths = _write(folder, texts)
    picture = folder / "reproduce.png"
    title = f"EB10, EB32, EB100 and between: scenario {result.scenario} (simulated)"
    _guard(picture, lambda: write_png(picture, [result.curve], title=title))
    return (*paths, picture)


def _write(folder: Path, texts: Mapping[str, bytes]) -> tuple[Path, ...]:
    paths = []
    for name, text in texts.items():
        path = folder / name
        _guard(path, lambda path=path, text=text: path.write_bytes(text))  # type: ignore[misc]
        paths.append(path)
    return tuple(paths)


def _guard(path: Path, action: Callable[[], object]) -> None:
    try:
        action()
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        message = f"--out {path}: cannot be written: {reason}"
        raise RunFolderError(message) from error
