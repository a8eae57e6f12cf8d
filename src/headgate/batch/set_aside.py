"""Set aside: late, bad and shed tuples are in no answer; they are counted, and delivered to those who asked."""

from __future__ import annotations

from pyspark.sql import functions as F

from headgate.batch.context import Context
from headgate.batch.outlet import Outlet, failing
from headgate.connect.scan import sound, together
from headgate.incremental.reduce import MALFORMED

#: What a malformed record is called where bad tuples are delivered.
RECORD = "record"


def set_aside(context: Context) -> Context:
    """Counts and delivers the late, bad and shed tuples of the flow's streams."""
    if context.work.level.depth:
        return context  # What stages answer is never late, nor bad.
    context.running.checkpoint.check_alone(context.before)
    return context.counted(late=_late(context), bad=_bad(context), shed=_shed(context))


def _late(context: Context) -> dict[str, int]:
    """Late tuples by query: a job of its own, if there are any."""
    program, late = context.program, dict[str, int]()
    for stream, pieces in context.input.streams.items():
        bounds = program.lateness.of(context.before, stream, context.figures)
        if not bounds:
            continue
        df = sound(pieces, program.good.get(stream))
        conditions: dict[str, list[str]] = {}
        for name in bounds:
            condition = program.lateness.condition(context.before, df, name, stream)
            conditions.setdefault(program.stages[name].query, []).append(condition)
        any_of = {query: " OR ".join(filter(None, own)) for query, own in conditions.items()}
        counts = df.agg(*(F.expr(f"count_if({c})").alias(n) for n, c in any_of.items())).first()
        assert counts is not None
        for name, count in counts.asDict().items():
            late[name] = late.get(name, 0) + count
            for outlet in _to(context, "late", name) if count else ():
                with failing(outlet):
                    outlet.sink.deliver(df.where(any_of[name]), f"{name}-late-{stream}", context.number)
    return late


def _bad(context: Context) -> dict[str, int]:
    """Bad tuples by stream; malformed ones are delivered with their record."""
    found = context.input.found
    counts = {name: context.figures.of(name).bad for name in found}
    for stream in (stream for stream, count in counts.items() if count):
        for outlet in _to(context, "bad", stream):
            df = together(found[stream])
            rows = df.where(context.program.watches[stream].is_bad(df)).withColumnRenamed(MALFORMED, RECORD)
            with failing(outlet):
                outlet.sink.deliver(rows, f"{stream}-bad", context.number)
    return counts


def _shed(context: Context) -> dict[str, int]:
    """Tuples that were left out, by query."""
    left_out, watches = context.input.left_out, context.program.watches
    counts = left_out.counted(context.figures)
    for query, own in counts.items():
        for stream in (stream for stream, count in own.items() if count):
            for outlet in _to(context, "shed", query):
                with failing(outlet):
                    rows = left_out.tuples(query, watches[stream])
                    outlet.sink.deliver(rows, f"{query}-shed-{stream}", context.number)
    return {query: sum(own.values()) for query, own in counts.items()}


def _to(context: Context, output: str, of: str) -> list[Outlet]:
    return [outlet for outlet in context.program.outlets if outlet.output == output and outlet.of == of]
