"""From the words of a window clause to a window specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from headgate.errors import WindowError
from headgate.lang import Length, Rank, WindowClause, parse_length, to_sql
from headgate.plan.logical.nodes import ROW_NUM, Field
from headgate.plan.logical.types import UNKNOWN, axis, is_numeric, is_time
from headgate.windows import Landmark, Number, Sliding, TupleSlide, Window

_ROWS = "rows"
_RANGE, _SLIDE = "RANGE", "SLIDE"
_SPARK_WORDS = (_RANGE, _SLIDE, "start")
Resolve = Callable[[exp.Column], Field]


def measure(length: Length, attribute: Field, word: str) -> Number:
    """A length in the units of the attribute: microseconds for time, rows for `row_num`, else a plain number."""
    value = Fraction(length.number if length.microseconds is None else length.microseconds)
    if length.microseconds is not None:
        if not (is_time(attribute.type) or attribute.type == UNKNOWN):
            raise WindowError(
                f"{word} {to_sql(length)} is a time, but {attribute.name} is {attribute.type}:"
                " window over a timestamp column, or give a plain number"
            )
        if value.denominator != 1:
            raise WindowError(f"{word} {to_sql(length)} is finer than a microsecond, the precision of time")
    elif length.unit == _ROWS:
        if attribute.name != ROW_NUM:
            raise WindowError(
                f"{word} {to_sql(length)} counts rows, but the windowing attribute is {attribute.name}: write"
                f" WA {ROW_NUM}; a range over {attribute.name} that slides by rows has"
                f" RATTR {attribute.name} SATTR {ROW_NUM}"
            )
        _whole(value, word)
    elif is_time(attribute.type):
        raise WindowError(f"{word} {to_sql(length)} over the time {attribute.name} needs a unit, such as seconds")
    elif not (is_numeric(attribute.type) or attribute.type == UNKNOWN):
        raise WindowError(f"{attribute.name} is {attribute.type}: a window needs a time, a number or {ROW_NUM}")
    if value <= 0 and word in (_RANGE, _SLIDE):
        over = f"the window over {attribute.name}"
        raise WindowError(f"{word} {to_sql(length)} of {over}: give a length greater than zero")
    return int(value) if value.denominator == 1 else value


def check_axis(attributes: Sequence[Field], what: str) -> None:
    """Raises a WindowError if windowing attributes have places that do not compare."""
    known = [a for a in attributes if a.type != UNKNOWN]
    for other in known[1:]:
        one, another = axis(known[0].type), axis(other.type)
        if one != another:
            raise WindowError(
                f"{known[0].name} is {known[0].type}, {one}, and {other.name} is {other.type}, {another}: the windows"
                f" of {what} are over one of these; give both columns one type, as in schema="
            )


def bind_window(clause: WindowClause, resolve: Resolve, progress: tuple[str, ...], types: dict[str, str]) -> Window:
    """The specification that a clause stands for, over an input that progresses on these attributes."""
    partition = tuple(resolve(attribute).name for attribute in clause.pa)
    if clause.rattr or clause.sattr:
        return _tuple_slide(clause, resolve)
    attribute = windowing_attribute(clause, resolve, progress, types)
    if clause.all:
        if clause.slide is None:
            raise WindowError("RANGE ALL needs a SLIDE: how often should the growing window answer?")
        return Landmark(measure(clause.slide, attribute, _SLIDE), attribute.name, partition=partition)
    assert clause.range is not None, "the parser lets no clause pass without a RANGE"
    if clause.slide is not None and clause.slide.unit == _ROWS and clause.range.microseconds is not None:
        raise WindowError(
            f"RANGE {to_sql(clause.range)} is a time and SLIDE {to_sql(clause.slide)} counts rows: name both"
            f" attributes, RATTR {attribute.name} SATTR {ROW_NUM}"
        )
    if clause.tumbling and clause.slide is not None:
        raise WindowError("a TUMBLING window slides by its own range: leave SLIDE out")
    size = measure(clause.range, attribute, _RANGE)
    slide = measure(clause.slide, attribute, _SLIDE) if clause.slide is not None else size
    return Sliding(size, slide, attribute.name, partition=partition)


def spark_window(arguments: list[exp.Expr], resolve: Resolve) -> Window:
    """The specification of Spark's own window(time, duration, slide, start)."""
    attribute, *literals = arguments
    if not isinstance(attribute, exp.Column) or not 1 <= len(literals) <= 3:
        raise WindowError("window() takes a time column, a duration, and optionally a slide and a start offset")
    if not all(isinstance(literal, exp.Literal) and literal.is_string for literal in literals):
        raise WindowError("the durations of window() are strings, such as '10 minutes'")
    field = resolve(attribute)
    size, slide, origin = (
        [measure(parse_length(text.name), field, word) for text, word in zip(literals, _SPARK_WORDS, strict=False)]
        + [None, None]
    )[:3]
    assert size is not None
    return Sliding(size, size if slide is None else slide, field.name, origin=origin or 0)


def windowing_attribute(
    clause: WindowClause, resolve: Resolve, progress: tuple[str, ...], types: dict[str, str]
) -> Field:
    """The attribute that a clause windows over: the one it names, or the one the input progresses on."""
    if clause.wa is not None:
        return resolve(clause.wa)
    lengths = [length for length in (clause.range, clause.slide) if length is not None]
    if lengths and all(length.unit == _ROWS for length in lengths):
        return resolve(exp.column(ROW_NUM))
    if len(progress) == 1:
        return Field(progress[0], types[progress[0]])
    if progress:
        raise WindowError(f"the input progresses on {', '.join(progress)}: say which with WA")
    raise WindowError("a window without a progressing attribute: add WA and the name of a time column")


def _tuple_slide(clause: WindowClause, resolve: Resolve) -> TupleSlide:
    if clause.rattr is None or clause.sattr is None:
        raise WindowError("RATTR and SATTR go together: one for the range, one for the slide")
    if clause.wa is not None:
        raise WindowError("WA stands for RATTR and SATTR at once: give either WA, or RATTR and SATTR")
    if clause.tumbling:
        raise WindowError("a window that slides by tuple has a SLIDE of its own: leave TUMBLING out")
    if clause.pa:
        raise WindowError("PA goes with WA row_num; a window that slides by tuple takes GROUP BY instead")
    if clause.range is None or clause.slide is None:
        raise WindowError("a window that slides by tuple needs RANGE (a length) and SLIDE (a number of rows)")
    attribute = resolve(clause.rattr)
    if attribute.name == ROW_NUM:
        raise WindowError(f"RATTR {ROW_NUM}: a range in rows that slides by rows is WA {ROW_NUM}")
    if clause.slide.unit not in (_ROWS, None):
        raise WindowError(f"SLIDE {to_sql(clause.slide)} with SATTR counts tuples: write it in rows")
    if isinstance(clause.sattr, Rank):
        ranked = resolve(clause.sattr.this)
        if ranked.name != attribute.name:
            raise WindowError(
                f"SATTR rank({ranked.name}) does not go with RATTR {attribute.name}: the slide has to follow the"
                f" order of the range, so write rank({attribute.name})"
            )
        order: Literal["row_num", "rank"] = "rank"
    else:
        if clause.sattr.name.lower() != ROW_NUM:
            raise WindowError(
                f"SATTR {clause.sattr.name} does not go with RATTR {attribute.name}:"
                f" a slide is counted over {ROW_NUM} or rank({attribute.name})"
            )
        resolve(clause.sattr)
        order = "row_num"
    slide = _whole(Fraction(clause.slide.number), "SLIDE")
    return TupleSlide(measure(clause.range, attribute, _RANGE), attribute.name, slide, order)


def _whole(value: Fraction, word: str) -> int:
    if value.denominator != 1:
        raise WindowError(f"{word} {value} rows: a number of rows is whole")
    return int(value)
