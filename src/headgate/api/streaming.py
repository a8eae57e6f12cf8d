"""The Structured Streaming query of a flow. It belongs to the caller's session and has settings of its own.

So the caller's `spark.streams` and listeners see it. Spark runs a query in a copy of the session that starts it. Before
it uses that copy, it tells listeners that the query has started, and waits for them. That is when the copy gets the
settings of the flow. The caller's session never has them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headgate.errors import FlowError, StateError

if TYPE_CHECKING:
    from pyspark.sql.conf import RuntimeConfig
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from headgate.spark.folder import Folder

_METADATA = "metadata"


def identify(log: Folder) -> str:
    """The id of the query that this log belongs to: the same in every run.

    If there is none yet, it is written here. Spark would write it with the settings of the caller's session, and keep
    using these.
    """
    known, entries = log.read(_METADATA), [log / "offsets", log / "commits"]
    for folder in entries:
        # A run that ends while it writes the first entry leaves a part of it. Spark would never start again with that.
        if not folder.files():
            folder.delete()
    if known is None:
        if any(folder.files() for folder in entries):
            raise StateError(f"{log.path}/{_METADATA} is missing, and what belongs to it is there: put the file back")
        known = json.dumps({"id": str(uuid.uuid4())})
        log.write(_METADATA, known)
    try:
        return str(json.loads(known)["id"])
    except (ValueError, KeyError, TypeError):
        raise StateError(f"the file {log.path}/{_METADATA} is damaged: put it back as it was") from None


def begin(
    frame: DataFrame,
    caller: SparkSession,
    name: str,
    log: Folder,
    prepare: Callable[[SparkSession], None],
    writing: Callable[[DataStreamWriter], DataStreamWriter],
) -> StreamingQuery:
    """Starts a query over a DataFrame of the flow's session. It runs in the caller's, with the settings of the flow's.

    `prepare` gets the session that the query runs in, before the query uses it.
    """
    if any(query.name == name for query in caller.streams.active):
        raise FlowError(f"a streaming query named {name} is active in this session: stop it, or rename the flow")
    settings = _Settings(identify(log), caller, frame.sparkSession, prepare)
    jvm: Any = caller.sparkContext._jvm
    plan = jvm.org.apache.spark.sql.classic.Dataset.ofRows(caller._jsparkSession, frame._jdf.logicalPlan())
    writer = writing(DataFrame(plan, caller).writeStream).queryName(name).option("checkpointLocation", log.path)
    caller.streams.addListener(settings)
    try:
        query = writer.start()
    finally:
        caller.streams.removeListener(settings)
    if not settings.given:
        query.stop()
        raise FlowError(f"flow {name} did not start: Spark told nobody of it; start it again")
    return query


class _Settings(StreamingQueryListener):
    """Gives the session of a query the settings of the flow, when the query starts."""

    def __init__(
        self, query: str, caller: SparkSession, flow: SparkSession, prepare: Callable[[SparkSession], None]
    ) -> None:
        self._query, self._caller, self._flow, self._prepare = query, caller, flow, prepare
        self.given = False

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - as Spark calls it
        if str(event.id) != self._query or (query := self._caller.streams.get(self._query)) is None:
            return
        session = SparkSession(self._caller.sparkContext, query._jsq.streamingQuery().sparkSessionForStream())
        _copy(self._flow.conf, session.conf)
        self._prepare(session)
        self.given = True

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass


def _copy(wanted: RuntimeConfig, to: RuntimeConfig) -> None:
    """Gives one session the settings of another."""
    there, asked = to.getAll, wanted.getAll
    for name in there.keys() - asked.keys():
        to.unset(name)
    for name, value in asked.items():
        if there.get(name) != value:
            to.set(name, value)
