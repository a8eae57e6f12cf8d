"""The rates at which the tuples of open windows have been sampled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from headgate.progress.place import read, written
from headgate.windows import Number, OnAxis

#: The most spans that are kept of a query: neighbours are taken together, at the lower rate of the two.
_SPANS = 200


class Span(NamedTuple):
    """Places that tuples of some batches had, from the first to the last, and the lowest rate of these batches."""

    first: Number
    last: Number
    rate: float


@dataclass(frozen=True)
class Sampled:
    """The spans of one query, in the order of batches.

    A tuple of a batch may be anywhere between the first and the last. So a window that reaches into a span may have had
    tuples that were taken at its rate. The most that one of them weighed is one over the lowest of these rates.

    >>> from headgate.windows import Sliding
    >>> sampled = Sampled().then(0, 99, 0.5).then(90, 180, 0.5).then(170, 260, 0.1)
    >>> sampled.spans
    (Span(first=0, last=180, rate=0.5), Span(first=170, last=260, rate=0.1))
    >>> sampled.tops(Sliding(100, 100, "ts"), 0, 3)
    {0: 2.0, 1: 10.0, 2: 10.0}
    """

    spans: tuple[Span, ...] = ()

    def then(self, first: Number, last: Number, rate: float) -> Sampled:
        """The same with the tuples of one more batch."""
        *before, new = (*self.spans, Span(first, last, rate))
        if before and before[-1].rate == rate:
            before[-1] = _together(before[-1], new)
        else:
            before.append(new)
        if len(before) > _SPANS:
            before = [_together(*before[:2]), *before[2:]]
        return Sampled(tuple(before))

    def tops(self, window: OnAxis, first: int, last: int) -> dict[int, float]:
        """By window from the first to the last that has sampled tuples, the largest weight that one may have had.

        It is infinite for a window of which nothing was taken for some time.
        """
        found: dict[int, float] = {}
        for span in self.spans:
            begin = first if window.growing else window.first_wid(span.first)
            end = last if window.growing else window.type.begun_at(span.last)
            for k in range(max(first, begin), min(last, end) + 1):
                found[k] = max(found.get(k, 1.0), 1 / span.rate if span.rate else math.inf)
        return found

    def forget(self, place: Number) -> Sampled:
        """The same without spans that end before a place, where the first window begins that is open."""
        return Sampled(tuple(span for span in self.spans if span.last >= place))

    def state(self) -> list[list[Any]]:
        """What `restored` needs, as JSON has it."""
        return [[written(span.first), written(span.last), span.rate] for span in self.spans]

    @classmethod
    def restored(cls, state: list[list[Any]]) -> Sampled:
        """The spans that were in this state."""
        return cls(tuple(Span(cast(Number, read(a)), cast(Number, read(b)), rate) for a, b, rate in state))


def _together(one: Span, other: Span) -> Span:
    return Span(min(one.first, other.first), max(one.last, other.last), min(one.rate, other.rate))
