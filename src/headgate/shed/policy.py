"""The door for shedding policies: what a policy is told, and what it decides."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from headgate import given
from headgate.shed.losses import Loss, RandomPairs, Tuples
from headgate.shed.shape import QueryShape

#: The names of the functions that make the policies of Headgate, for errors.
_OWN = ("exact", "estimate", "subset", "sample")
#: Digits of a fraction that count, so that all but 0.9 is 0.1.
_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is known before a batch is read. Seconds are None as long as no `hg.overload` was promised."""

    query: QueryShape
    batch: int
    now: datetime
    """When the batch begins, in UTC."""
    tuples: Mapping[str, float] = field(default_factory=dict)
    """How many tuples are expected of each stream, where that is known."""
    passing: float | None = None
    """The part of the tuples that the query counts, as far as batches have told."""
    last: float | None = None
    """The share that the policy kept in the batch before; None where it left that to the planner."""
    seconds: float | None = None
    """How long the batch would take if nothing was left out."""
    target: float | None = None
    """How long it may take."""

    @property
    def fullness(self) -> float:
        """The part of the target that the batch would take: 1 is full, 0 where nothing was promised."""
        return self.seconds / self.target if self.seconds is not None and self.target else 0.0


@runtime_checkable
class Policy(Protocol):
    """What may be left out of a query, and how much. Subclass it, and give an object to `flow.query(policy=...)`.

    A policy holds no state, and its answers depend on their arguments alone. What it decides is written down before the
    batch, so a batch that runs again leaves out the same.

    >>> from headgate.shed import losses
    >>> class Half(Policy):
    ...     def loss(self, query): return losses.Tuples(confidence=0.95)
    ...     def keep(self, now): return 0.5
    >>> Half().describe()
    "shed = 'Half'"
    """

    @property
    def weight(self) -> float:
        """Among queries of one priority, an error of one with a higher weight counts for more."""
        return 1.0

    @property
    def priority(self) -> int:
        """A query of a higher priority is answered exactly before a lower one gets anything."""
        return 0

    @abstractmethod
    def loss(self, query: QueryShape) -> Loss:
        """What may be left out of a query, or an `hg.FlowError` where the policy does not fit it."""
        raise NotImplementedError

    def keep(self, now: Situation) -> float | None:  # noqa: ARG002
        """The share to keep in the next batch; None leaves it to the planner, which sheds under overload only."""
        return None

    def describe(self) -> str:
        """The policy in words, for `explain`: as a script writes it after WITH."""
        return f"shed = {type(self).__name__!r}"


def as_policy(what: str, policy: object, otherwise: Policy) -> Policy:
    """Give the policy of a query, which is another one if none was given."""
    if policy is None:
        return otherwise
    if isinstance(policy, type) and isinstance(policy, Policy):
        raise given.refused(f"{what}: policy", policy, f"{policy.__name__}(...), with its parentheses")
    if not isinstance(policy, Policy):
        word = policy if isinstance(policy, str) else getattr(policy, "__name__", "")
        own = word if word in _OWN else "estimate"
        others = " or another of hg.exact(), hg.subset(), hg.sample()" if own != word else ", with its parentheses"
        raise given.refused(f"{what}: policy", policy, f"hg.{own}(){others}")
    return policy


def share_kept(policy: Policy, loss: Loss, now: Situation) -> float | None:
    """Ask a policy how much of a batch to keep.

    Samples are never empty: nothing could be estimated from them.
    """
    share = policy.keep(now)
    if share is None:
        return None
    what, sampled = f"query {now.query.name}: {type(policy).__name__}.keep", isinstance(loss, Tuples | RandomPairs)
    above = "a share above 0 and not above 1, or None" if sampled else "a share from 0 to 1, or None"
    return given.number(what, share, above, lambda s: (s > 0 or (s == 0 and not sampled)) and s <= 1)


def left_out(share: float) -> float:
    """Give the fraction that is left out where a share is kept.

    >>> left_out(0.9)
    0.1
    """
    return round(1 - share, _DIGITS)


def rate_of(what: str, rate: object, of: str) -> float | None:
    """A rate that was given, or an error."""
    if rate is None:
        return None
    return given.number(f"{what}: rate", rate, f"a share of the {of} above 0 and not above 1", lambda r: 0 < r <= 1)


def weight_of(what: str, weight: object) -> float:
    """A weight that was given, or an error."""
    return given.number(f"{what}: weight", weight, "a number above 0", lambda w: 0 < w < float("inf"))


def described(policy: object, word: str, said: Mapping[str, object]) -> str:
    """Give a policy as a script writes it: the properties that are not as they are anyway."""
    defaults = type(policy).__dataclass_fields__  # type: ignore[attr-defined]
    own = [f"{name} = {value!r}" for name, value in said.items() if value != defaults[name].default]
    return ", ".join([f"shed = {word!r}", *own])
