"""Suggest the nearest name for one that is not known."""

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Return words that point to the nearest known name, or list them.

    >>> nearest("Acount", ["Account", "Item"])
    'did you mean Account?'
    >>> nearest("zzz", ["Account", "Item"])
    'known: Account, Item'
    """
    names = sorted(known)
    if not names:
        return "none are known"
    folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f"did you mean {folded[close[0]]}?" if close else f"known: {', '.join(names)}"
