"""The progress rule of a stream: what its source promises about the progressing attribute."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import TypeAlias

from headgate.errors import ParseError, ProgressError
from headgate.given import checked, settled, whole
from headgate.lang import Length, Progress, parse_length, to_sql
from headgate.plan.logical.types import UNKNOWN, is_numeric, is_time
from headgate.windows import Number

Span: TypeAlias = str | timedelta | float | Decimal | Number
"""A length as users give it: '10 seconds', a timedelta, or a plain number."""

_SECOND = 1_000_000
_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


@dataclass(frozen=True, slots=True)
class Rule:
    """One promise about `attr`, perhaps kept for each value of `by`, and how long a quiet source is waited for.

    `within` is in the units of the attribute, microseconds for a time; `idle` is in microseconds. `numeric`
    says that the attribute is a plain number, which the wall clock tells nothing about.
    """

    attr: str
    within: Number | None = None
    ordered: bool = False
    slack_rows: int | None = None
    punctuated_by: str | None = None
    by: str | None = None
    idle: int | None = None
    numeric: bool = False

    def __post_init__(self) -> None:
        promises: dict[str, object] = {
            "within": self.within,
            "ordered": self.ordered or None,
            "slack_rows": self.slack_rows,
            "punctuated_by": self.punctuated_by,
        }
        given = [word for word, value in promises.items() if value is not None]
        if not given:
            raise ProgressError(f"progress on {self.attr} has no rule: give one of {', '.join(promises)}")
        if len(given) > 1:
            raise ProgressError(f"progress on {self.attr} has the rules {' and '.join(given)}: give only one of them")
        if self.within is not None and self.within < 0:
            raise ProgressError(f"within={self.within} for progress on {self.attr} is negative: give zero or more")
        if not isinstance(self.ordered, bool):
            raise ProgressError(f"ordered={self.ordered!r} for progress on {self.attr}: give True or False")
        if self.slack_rows is not None:
            rows = f"progress on {self.attr}: slack_rows"
            settled(self, slack_rows=whole(rows, self.slack_rows, "a number of rows, zero or more", 0, ProgressError))
        if self.idle is not None and self.idle <= 0:
            raise ProgressError(f"idle for progress on {self.attr} is {self.idle} microseconds: give more than zero")

    @classmethod
    def of(cls, statement: Progress) -> Rule:
        """Give the rule that PROGRESS ON states in a script.

        >>> from headgate.lang import parse_script
        >>> (stream,) = parse_script("CREATE STREAM S FROM kafka PROGRESS ON ts SLACK 100 ROWS IDLE 30 seconds")
        >>> rule = Rule.of(stream.progress)
        >>> rule.attr, rule.slack_rows, rule.idle
        ('ts', 100, 30000000)
        """
        within, numeric = _within(statement.within)
        return cls(
            attr=statement.on.name,
            within=within,
            ordered=statement.ordered,
            slack_rows=statement.slack_rows,
            punctuated_by=statement.punctuated_by.name if statement.punctuated_by else None,
            by=statement.by.name if statement.by else None,
            idle=_idle(statement.idle),
            numeric=numeric,
        )

    def over(self, type_: str) -> Rule:
        """Give the rule for a column of this Spark type, or an error where `within` is of another kind.

        >>> progress("v", ordered=True).over("double").numeric
        True
        >>> progress("ts", within=10).over("timestamp")
        Traceback (most recent call last):
        headgate.errors.ProgressError: within=10 for progress on the time ts needs a unit, such as '10 seconds'
        """
        if type_ == UNKNOWN:
            return self
        if not (is_time(type_) or is_numeric(type_)):
            raise ProgressError(f"{self.attr} is {type_}, and only a time or a number can progress")
        if self.within is not None and is_time(type_) and self.numeric:
            raise ProgressError(
                f"within={self.within} for progress on the time {self.attr} needs a unit, such as '10 seconds'"
            )
        if self.within is not None and is_numeric(type_) and not self.numeric:
            raise ProgressError(
                f"within for progress on {self.attr} is a time, but {self.attr} is {type_}: give a number"
            )
        return replace(self, numeric=is_numeric(type_))


@checked("hg.progress", ProgressError)
def progress(
    attr: str,
    *,
    within: Span | None = None,
    ordered: bool = False,
    slack_rows: int | None = None,
    punctuated_by: str | None = None,
    by: str | None = None,
    idle: Span | None = None,
) -> Rule:
    """Give the rule by which a stream progresses on `attr`; exactly one promise has to be made about it.

    - `within`: a tuple is at most this far behind the highest value that came before it.
    - `ordered`: a tuple is never below one that came before it.
    - `slack_rows`: a tuple is never below one that came more than this many rows before it. In which order the rows of
      a batch came is not known, so that of a batch by itself, all but that many of the highest rows are certain.
    - `punctuated_by`: where this boolean column is true, no later tuple is below this one.

    With `by`, the promise holds for each value of that column, and the stream's progress is the least of
    them. After `idle` (a number is seconds), a quiet source or group stops holding the others back. Names
    that are no plain words stand in backquotes.

    >>> progress("ts", within="10 seconds", by="router", idle=30).within
    10000000
    >>> progress("ts")
    Traceback (most recent call last):
    headgate.errors.ProgressError: progress on ts has no rule: give one of within, ordered, slack_rows, punctuated_by
    """
    distance, numeric = _within(within)
    return Rule(
        attr=_name("attr", attr),
        within=distance,
        ordered=ordered,
        slack_rows=slack_rows,
        punctuated_by=None if punctuated_by is None else _name("punctuated_by", punctuated_by),
        by=None if by is None else _name("by", by),
        idle=_idle(idle),
        numeric=numeric,
    )


def _name(word: str, name: object) -> str:
    if isinstance(name, str):
        if name.isidentifier():
            return name
        if quoted := _QUOTED.fullmatch(name):
            return quoted[1].replace("``", "`")
    raise ProgressError(f"{word}={name!r} is not the name of a column: give a plain word, or any text in backquotes")


def _within(span: Span | Length | None) -> tuple[Number | None, bool]:
    """The distance in the units of the attribute, and whether these are plain numbers."""
    if span is None:
        return None, False
    distance, timed = _measured("within", span)
    if timed and distance.denominator != 1:
        raise ProgressError(f"within={_shown(span)} is finer than a microsecond, the precision of time")
    return (int(distance) if distance.denominator == 1 else distance), not timed


def _idle(span: Span | Length | None) -> int | None:
    """The microseconds of a span, in which a plain number is seconds."""
    if span is None:
        return None
    amount, timed = _measured("idle", span)
    return round(amount if timed else amount * _SECOND)


def _measured(word: str, span: Span | Length) -> tuple[Fraction, bool]:
    """The length of a span and whether it is a time, in microseconds then."""
    if isinstance(span, timedelta):
        return Fraction(span // timedelta(microseconds=1)), True
    if isinstance(span, str | Length):
        length = _length(word, span)
        if length.microseconds is not None:
            return Fraction(length.microseconds), True
        if length.unit is not None:
            hint = "use slack_rows" if word == "within" else "give a time, such as '30 seconds'"
            raise ProgressError(f"{word}={_shown(span)} counts rows: {hint}")
        return Fraction(length.number), False
    if isinstance(span, Real | Decimal) and not isinstance(span, bool):
        try:
            return Fraction(str(span)), False  # The digits that the user wrote: 0.1 is a tenth.
        except ValueError:
            pass
    raise ProgressError(f"{word}={span!r} is not a length: give a text such as '10 seconds', a timedelta or a number")


def _length(word: str, span: str | Length) -> Length:
    if isinstance(span, Length):
        return span
    try:
        return parse_length(span)
    except ParseError as error:
        raise ProgressError(f"{word}={span!r} is not a length such as '10 seconds': {error}") from None


def _shown(span: Span | Length) -> str:
    return to_sql(span) if isinstance(span, Length) else repr(span)
