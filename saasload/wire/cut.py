"""Cut a stream of fragments into calls."""

from collections.abc import Iterable, Iterator
from itertools import accumulate, takewhile

from saasload.model import Call, Company, Fragments, Note, Outcomes, RowStatus, all_rows


def cut(
    stream: Iterable[Fragments | Outcomes], company: Company, *, max_rows: int, max_bytes: int, overhead: int
) -> Iterator[Call | Outcomes]:
    """Pack fragments into the fewest calls, in order, within both limits.

    Outcomes in the stream (rows refused here) pass through. A row that no call can hold is rejected,
    before anything of it is sent.
    """
    rows: list[int] = []
    bodies: list[bytes] = []
    keys: list[str] = []
    room = max_bytes - overhead
    for item in stream:
        if isinstance(item, Outcomes):
            yield item
            continue
        fitting, oversized = _oversized(item, room)
        if oversized is not None:
            yield oversized
        if max_rows == 1:
            for row, body, key in zip(fitting.rows, fitting.bodies, fitting.keys, strict=True):
                yield Call(company, Fragments((row,), (body,), (key,)), overhead + len(body))
            continue
        rows.extend(fitting.rows)
        bodies.extend(fitting.bodies)
        keys.extend(fitting.keys)
        start = 0
        while len(rows) - start >= max_rows or _full(bodies, start, room):
            count = _fit(bodies, start, max_rows, room)
            if start + count == len(rows) and count < max_rows:
                break  # the rest might still share its call with what comes next
            yield _call(company, Fragments(rows, bodies, keys), slice(start, start + count), overhead)
            start += count
        del rows[:start], bodies[:start], keys[:start]
    start = 0
    while start < len(rows):
        count = _fit(bodies, start, max_rows, room)
        yield _call(company, Fragments(rows, bodies, keys), slice(start, start + count), overhead)
        start += count


def split(call: Call, overhead: int) -> tuple[Call, Call]:
    """Halve a call that was too much at once, its rows in order; it must have at least two."""
    middle = len(call.rows) // 2
    return (
        _call(call.company, call.fragments, slice(0, middle), overhead),
        _call(call.company, call.fragments, slice(middle, None), overhead),
    )


def shrink(call: Call, rows: set[int], overhead: int) -> Call:
    """Keep only some rows of a call, to be sent again as its next attempt."""
    kept = [place for place, row in enumerate(call.rows) if row in rows]
    fragments = Fragments(
        [call.fragments.rows[place] for place in kept],
        [call.fragments.bodies[place] for place in kept],
        [call.fragments.keys[place] for place in kept],
    )
    return Call(call.company, fragments, overhead + sum(map(len, fragments.bodies)), call.attempt + 1)


def _oversized(fragments: Fragments, room: int) -> tuple[Fragments, Outcomes | None]:
    if max(map(len, fragments.bodies), default=0) <= room:
        return fragments, None
    kept = [place for place, body in enumerate(fragments.bodies) if len(body) <= room]
    rows = [row for row, body in zip(fragments.rows, fragments.bodies, strict=True) if len(body) > room]
    fitting = Fragments(
        [fragments.rows[place] for place in kept],
        [fragments.bodies[place] for place in kept],
        [fragments.keys[place] for place in kept],
    )
    note = Note("too-large", f"more than the {room:,} bytes that fit in one call")
    return fitting, all_rows(rows, RowStatus.REJECTED, note)


def _full(bodies: list[bytes], start: int, room: int) -> bool:
    return sum(map(len, bodies[start:])) >= room


def _fit(bodies: list[bytes], start: int, max_rows: int, room: int) -> int:
    """Count the fragments from `start` on that share one call."""
    sizes = accumulate(map(len, bodies[start : start + max_rows]))
    return max(1, sum(1 for _ in takewhile(lambda size: size <= room, sizes)))


def _call(company: Company, fragments: Fragments, part: slice, overhead: int) -> Call:
    taken = Fragments(fragments.rows[part], fragments.bodies[part], fragments.keys[part])
    return Call(company, taken, overhead + sum(map(len, taken.bodies)))
