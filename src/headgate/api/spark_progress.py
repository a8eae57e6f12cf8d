"""What a run over bounded streams says of its batches, in the form that Spark gives it for a streaming query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryProgress

if TYPE_CHECKING:
    from headgate.observe.events import BatchCommitted


def as_progress(event: BatchCommitted, id_: str) -> StreamingQueryProgress:
    """A batch as Spark would tell of it. `id_` is the id of the flow's checkpoint.

    >>> from headgate.observe.events import BatchCommitted, BatchReport, Standing
    >>> report = BatchReport(
    ...     batch=0, rows=8, rows_by_stream={"Main": 8}, seconds={"ingest": 0.25}, answers={"q": 3}, late={},
    ...     state_rows=0, state_bytes=0,
    ... )
    >>> standing = Standing(batch=0, progress={}, closed={}, state={}, totals={}, shed={})
    >>> no_id = "00000000-0000-0000-0000-000000000000"
    >>> found = as_progress(BatchCommitted(run_id=no_id, report=report, standing=standing), no_id)
    >>> found.numInputRows, found["processedRowsPerSecond"], found.sources[0].description
    (8, 32.0, 'Main')
    """
    report = event.report
    seconds = report.total_seconds or 1e-3
    steps = {step: round(own * 1000) for step, own in report.seconds.items()}
    took = round(seconds * 1000)
    streams = [
        {
            "description": stream,
            "startOffset": None,
            "endOffset": None,
            "latestOffset": None,
            "numInputRows": rows,
            "inputRowsPerSecond": rows / seconds,
            "processedRowsPerSecond": rows / seconds,
        }
        for stream, rows in report.rows_by_stream.items()
    ]
    return StreamingQueryProgress.fromJson(
        {
            "id": id_,
            "runId": event.run_id,
            "name": event.flow,
            "timestamp": event.timestamp,
            "batchId": report.batch,
            "batchDuration": took,
            "durationMs": {**steps, "triggerExecution": took},
            "stateOperators": [],
            "sources": streams,
            "sink": {"description": "headgate", "numOutputRows": sum(report.answers.values())},
            "numInputRows": report.rows,
            "inputRowsPerSecond": report.rows / seconds,
            "processedRowsPerSecond": report.rows / seconds,
        }
    )
