"""Punctuation no finer than windows need: only where a window ends does it make a difference."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.progress.place import Punctuation, furthest
from headgate.progress.propagation import late_before
from headgate.windows import OnAxis


def coarsened(p: Punctuation, windows: Iterable[OnAxis]) -> Punctuation:
    """Give the greatest value up to `p` at which one of the windows ends; None where nothing waits for one.

    It closes the windows that `p` closes. A second punctuation of the same value closes nothing more, and
    need not go any further.

    >>> from headgate.windows import Sliding
    >>> fine, coarse = Sliding(5, 5, "ts"), Sliding(60, 60, "ts")
    >>> coarsened(63, [fine, coarse]), coarsened(64, [fine, coarse]), coarsened(63, [coarse])
    (60, 60, 60)
    """
    if isinstance(p, float):
        return p
    return furthest(late_before(window, p) for window in windows)
