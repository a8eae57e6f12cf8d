"""How a stream progresses: on which attribute, by which rule, and whom it waits for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headgate import given
from headgate.errors import ProgressError
from headgate.lang import Progress
from headgate.plan.logical import render
from headgate.plan.logical.types import UNKNOWN, is_numeric, is_time
from headgate.progress.builtin import Ordered, PunctuatedBy, Within
from headgate.progress.rule import ProgressRule
from headgate.progress.slack import SlackRows
from headgate.progress.span import Span, distance, idle_time, time_text
from headgate.windows import Number

if TYPE_CHECKING:
    from sqlglot import exp

_QUOTED = re.compile(r"`((?:[^`]|``)+)`")


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """A rule about `attr`, perhaps kept for each value of `by`, and how long a quiet source is waited for."""

    attr: str
    rule: ProgressRule
    by: str | None = None
    idle: int | None = None
    """In microseconds."""
    numeric: bool = False
    """Whether the attribute is a plain number, which the wall clock tells nothing about."""

    def __post_init__(self) -> None:
        if self.idle is not None and self.idle <= 0:
            raise ProgressError(f"idle for progress on {self.attr} is {self.idle} microseconds: give more than zero")

    @classmethod
    def of(cls, statement: Progress, names: Mapping[str, str] | None = None) -> StreamProgress:
        """Give what PROGRESS ON states in a script; `names` are those of the columns, by their lower case.

        >>> from headgate.lang import parse_script
        >>> (stream,) = parse_script("CREATE STREAM S FROM kafka PROGRESS ON ts SLACK 100 ROWS IDLE 30 seconds")
        >>> StreamProgress.of(stream.progress)
        StreamProgress(attr='ts', rule=SlackRows(slack=100), by=None, idle=30000000, numeric=False)
        """

        def column(name: exp.Column | None) -> str | None:
            return None if name is None else _in_backquotes(name.name if names is None else names[name.name.lower()])

        return progress(
            column(statement.on) or "",
            within=statement.within,
            ordered=statement.ordered,
            slack_rows=statement.slack_rows,
            punctuated_by=column(statement.punctuated_by),
            by=column(statement.by),
            idle=statement.idle,
        )

    @property
    def columns(self) -> list[str]:
        """The columns of the stream that progress depends on."""
        return [name for name in (self.attr, self.by, self.rule.needs.marked_by) if name is not None]

    def over(self, type_: str) -> StreamProgress:
        """Give the same for a column of this Spark type, or an error where the rule does not fit it.

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
        self.rule.check(self.attr, type_)
        return replace(self, numeric=is_numeric(type_))

    def describe(self) -> str:
        """All of it in words, as a script writes it.

        >>> progress("ts", within="10 seconds", by="router", idle="1 minute").describe()
        'PROGRESS ON ts WITHIN 10 seconds BY router IDLE 1 minute'
        """
        said = [f"PROGRESS ON {render.name(self.attr)}", self.rule.describe()]
        said += [f"BY {render.name(self.by)}"] if self.by is not None else []
        return " ".join([*said, *([f"IDLE {time_text(self.idle)}"] if self.idle is not None else [])])


@given.checked("hg.progress", ProgressError)
def progress(
    attr: str,
    *,
    within: Span | None = None,
    ordered: bool = False,
    slack_rows: int | None = None,
    punctuated_by: str | None = None,
    by: str | None = None,
    idle: Span | None = None,
    rule: ProgressRule | None = None,
) -> StreamProgress:
    """Say how a stream progresses on `attr`. Give exactly one rule:

    - `within`: a tuple is at most this far below the highest one before it.
    - `ordered`: a tuple is never below one before it.
    - `slack_rows`: a tuple is never below one that came more than this many rows before it. The order of the rows in a
      batch is not known, so of a batch by itself, all but that many of the highest rows are certain.
    - `punctuated_by`: where this boolean column is true, no later tuple is below this one.
    - `rule`: a rule of your own, an object of a subclass of `hg.ProgressRule`.

    With `by`, the rule holds for each value of that column, and the stream's progress is the least of theirs. After
    `idle` (a number is seconds), a quiet source or group stops holding the others back. A name that is not a plain
    word stands in backquotes.

    >>> progress("ts", within="10 seconds", by="router", idle=30).rule
    Within(distance=10000000, numeric=False)
    >>> progress("ts")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    headgate.errors.ProgressError: progress on ts has no rule: give one of within, ordered, slack_rows, punctuated_by...
    """
    name = _name("attr", attr)
    length, numeric = (None, False) if within is None else distance(within)
    marks = None if punctuated_by is None else _name("punctuated_by", punctuated_by)
    group = None if by is None else _name("by", by)
    quiet = None if idle is None else idle_time(idle)
    given_rules = {
        "within": length,
        "ordered": ordered or None,
        "slack_rows": slack_rows,
        "punctuated_by": marks,
        "rule": rule,
    }
    words = [word for word, value in given_rules.items() if value is not None]
    if not words:
        raise ProgressError(f"progress on {name} has no rule: give one of {', '.join(given_rules)}")
    if len(words) > 1:
        raise ProgressError(f"progress on {name} has the rules {' and '.join(words)}: give only one of them")
    if length is not None:
        own: ProgressRule = _within(name, length, numeric)
    elif marks is not None:
        own = PunctuatedBy(marks)
    elif slack_rows is not None:
        rows = f"progress on {name}: slack_rows"
        own = SlackRows(given.whole(rows, slack_rows, "a number of rows, zero or more", 0, ProgressError))
    else:
        own = _ordered(name, ordered) if rule is None else _checked(name, rule)
    return StreamProgress(name, own, group, quiet, numeric)


def _within(attr: str, length: Number, numeric: bool) -> Within:
    if length < 0:
        raise ProgressError(f"within={length} for progress on {attr} is negative: give zero or more")
    return Within(length, numeric)


def _ordered(attr: str, ordered: object) -> Ordered:
    if not isinstance(ordered, bool):
        raise ProgressError(f"ordered={ordered!r} for progress on {attr}: give True or False")
    return Ordered()


def _checked(attr: str, rule: object) -> ProgressRule:
    """A rule of the user's own, if it is one and its state can be written down."""
    what = f"progress on {attr}: rule"
    if isinstance(rule, type) or not isinstance(rule, ProgressRule):
        instead = f"{rule.__name__}(...), an object" if isinstance(rule, type) else "an object of a class of your own"
        raise given.refused(what, rule, f"{instead} that has what hg.ProgressRule has", ProgressError)
    try:
        json.dumps(rule.start())
    except (TypeError, ValueError) as error:
        raise ProgressError(f"{what}: its first state cannot be written as JSON: {error}") from None
    return rule


def _name(word: str, name: object) -> str:
    if isinstance(name, str):
        if name.isidentifier():
            return name
        if found := _QUOTED.fullmatch(name):
            return found[1].replace("``", "`")
    raise ProgressError(f"{word}={name!r} is not the name of a column: give a plain word, or any text in backquotes")


def _in_backquotes(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
