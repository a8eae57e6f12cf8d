"""When to shed, and how much time a batch may take: batches are kept within a target, and left alone below it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headgate import given
from headgate.errors import ParseError
from headgate.lang import parse_length

#: Back to exact when an exact batch takes less than this part of the time at which shedding begins.
_BELOW = 0.95
#: How many more batches have to be for shedding, or for the end of it, than against it.
_ALARM, _CALM = 2, 3
#: A backlog is waited for, if arrivals alone are no overload, while an exact batch takes at most so many targets.
_PATIENCE = 2.0
#: The part of an error by which the correction moves, the largest error that counts, and the largest correction;
#: the latter two as logarithms.
_SLOW, _FAR, _BOUND = 0.05, 0.25, 1.0
#: How much the last batch counts in the usual error, what this is at first, and how many of them are left free.
_RECENT, _USUAL, _MARGIN = 0.05, 0.1, 2.0


@dataclass(frozen=True, slots=True)
class Overload:
    """What is promised under overload: batches take at most `target` seconds, with a part of it left free."""

    target: float
    headroom: float

    def __post_init__(self) -> None:
        time, part = "a time above zero, such as '5 seconds'", "a part of the target, from 0 to below 1"
        given.settled(
            self,
            target=given.number("hg.overload: target", self.target, time, lambda t: 0 < t < math.inf),
            headroom=given.number("hg.overload: headroom", self.headroom, part, lambda h: 0 <= h < 1),
        )

    @property
    def capacity(self) -> float:
        """The seconds of work that a batch may be planned with."""
        return self.target * (1 - self.headroom)


@given.checked("hg.overload")
def overload(target: str | timedelta | float, *, headroom: float = 0.1) -> Overload:
    """Give the promise that batches take at most `target` (a number is seconds), by shedding if need be.

    Shedding begins when an exact batch would leave less than `headroom` of the target free.

    >>> overload("5 seconds").capacity
    4.5
    >>> overload("5 rows")
    Traceback (most recent call last):
    headgate.errors.FlowError: hg.overload: target='5 rows': give a time above zero, such as '5 seconds'
    """
    return Overload(_seconds(target), headroom)


@dataclass(frozen=True, slots=True)
class Event:
    """A change between exact and shedding, and why."""

    shed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the next batch is shed, and the seconds, as the cost model counts them, that it may be planned with."""

    shed: bool
    budget_seconds: float
    event: Event | None


class Controller:
    """Keeps batches within the target: the model says what is to come, and what was observed corrects it.

    A batch holds what arrived while the one before it ran. So one slow batch makes the next one long, and the next one
    after that. Below capacity such a backlog shrinks by itself: nothing is shed for it until it is larger than two
    targets. Above capacity it would grow without end. So shedding begins when both the batch and a target's worth of
    its arrivals are too much. It ends when both have fit for a few batches.

    >>> controller = Controller(overload("5 seconds"))
    >>> controller.decide(exact_seconds=4.0, fixed_seconds=0.4, interval=5.0).shed
    False
    >>> controller.decide(exact_seconds=6.0, fixed_seconds=0.4, interval=8.0).shed  # after a slow batch
    False
    >>> decision = controller.decide(exact_seconds=12.0, fixed_seconds=0.4, interval=5.0)
    >>> decision.shed, round(decision.budget_seconds, 2)
    (True, 4.17)
    >>> print(decision.event.reason)
    an exact batch would take 12.0 s, more than the 4.5 s that the target of 5.0 s allows
    """

    def __init__(self, overload: Overload) -> None:
        self.overload = overload
        self._shedding = False
        self._votes = 0
        self._correction = 0.0
        self._error = _USUAL

    @property
    def correction(self) -> float:
        """What batches take just now for each second that the model gives them."""
        return math.exp(self._correction)

    @property
    def capacity(self) -> float:
        """The seconds that a batch may be planned with, as the cost model counts them."""
        return self.overload.capacity / self.correction

    def observe(self, *, predicted: float, observed: float) -> None:
        """Take in how long a batch took, and what the model gave to its plan.

        The model learns by itself what work costs. Two things are left to correct: batches that do other work than was
        planned, because more arrived, and a model that lags. So the correction moves slowly.
        """
        if not (0 <= predicted < math.inf and 0 < observed < math.inf):
            raise ValueError(f"a batch of {observed} s, predicted as {predicted} s: give durations above zero")
        if predicted == 0:
            return  # Nothing was to be done, and the model knows of no fixed cost yet.
        off = math.log(observed) - math.log(predicted) - self._correction
        off = min(max(off, -_FAR), _FAR)
        self._correction = min(max(self._correction + _SLOW * off, -_BOUND), _BOUND)
        self._error += _RECENT * (abs(off) - self._error)

    def decide(
        self, *, exact_seconds: float, fixed_seconds: float, interval: float, calibrated: bool = True
    ) -> Decision:
        """Give what the next batch may cost, whose tuples arrived within `interval` seconds.

        `exact_seconds` is what the model predicts for all of it, and `fixed_seconds` the part that does not grow
        with the arrivals. Until the model is calibrated, only a large backlog is believed.
        """
        if not (0 <= exact_seconds < math.inf and 0 <= fixed_seconds < math.inf and 0 < interval < math.inf):
            raise ValueError(f"exact_seconds={exact_seconds}, fixed_seconds={fixed_seconds}, interval={interval}")
        exact, fixed = exact_seconds * self.correction, fixed_seconds * self.correction
        lasting = fixed + max(exact - fixed, 0.0) * self.overload.target / interval
        event = self._calmed(exact, lasting) if self._shedding else self._alarmed(exact, lasting, calibrated)
        if event:
            self._shedding, self._votes = event.shed, 0
        return Decision(self._shedding, self._budget / self.correction, event)

    def state(self) -> dict[str, Any]:
        """Give what `restored` needs, as JSON has it."""
        return {
            "shedding": self._shedding,
            "votes": self._votes,
            "correction": self._correction,
            "error": self._error,
        }

    @classmethod
    def restored(cls, overload: Overload, state: Mapping[str, Any]) -> Controller:
        """Give the controller that was in this state."""
        controller = cls(overload)
        controller._shedding, controller._votes = state["shedding"], state["votes"]
        controller._correction, controller._error = state["correction"], state["error"]
        return controller

    @property
    def _budget(self) -> float:
        """The seconds that a shed batch may take: the headroom is left free, and twice the usual error."""
        return min(self.overload.capacity, self.overload.target / (1 + _MARGIN * self._error))

    def _alarmed(self, exact: float, lasting: float, calibrated: bool) -> Event | None:
        target, capacity = self.overload.target, self.overload.capacity
        need = min(exact, lasting) if calibrated else 0.0
        if need > target or self._voted(need > capacity) == _ALARM:
            allowed = f"the {capacity:.1f} s that the target of {target:.1f} s allows"
            return Event(True, f"an exact batch would take {min(exact, lasting):.1f} s, more than {allowed}")
        if exact > _PATIENCE * target:
            return Event(True, f"the backlog would take {exact:.1f} s, more than {_PATIENCE:g} targets")
        return None

    def _calmed(self, exact: float, lasting: float) -> Event | None:
        enough = _BELOW * self.overload.capacity
        if self._voted(max(exact, lasting) < enough) < _CALM:
            return None
        return Event(False, f"an exact batch takes {exact:.1f} s, less than {enough:.1f} s, as it has for a while")

    def _voted(self, change: bool) -> int:
        """How many more of the last batches were for a change than against it."""
        self._votes = self._votes + 1 if change else max(self._votes - 1, 0)
        return self._votes


def _seconds(target: object) -> float:
    if isinstance(target, timedelta):
        return target.total_seconds()
    if isinstance(target, str):
        with suppress(ParseError):
            length = parse_length(target)
            if length.microseconds is not None:
                return float(length.microseconds) / 1e6
    # What is no time, nor a number of seconds, is refused with those that are out of range.
    return target  # type: ignore[return-value]
