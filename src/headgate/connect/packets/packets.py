"""Generated network packets: the stream of the demonstration, the benchmarks and many tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.connect.offsets import register
from headgate.connect.packets.datasource import PacketDataSource, spark_schema
from headgate.connect.packets.pace import Pace
from headgate.connect.packets.rates import Bursts, Diurnal, Steps
from headgate.connect.packets.rows import PacketRows
from headgate.errors import Error
from headgate.given import settled, whole
from headgate.spark.splitting import cores

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from pyspark.sql.types import StructType

__all__ = ["Bursts", "Diurnal", "PacketSource", "Steps", "packets"]


def packets(
    spark: SparkSession,
    rows: int,
    *,
    seconds: float = 3600,
    hosts: int = 5000,
    zipf: float = 1.1,
    seed: int = 0,
    start: str = "2026-01-01 00:00:00",
    disorder: float = 0.0,
    partitions: int | None = None,
) -> DataFrame:
    """A bounded DataFrame of `rows` packets in order of arrival, evenly over `seconds` from `start` (UTC).

    10.0.0.1 is the most frequent host. The others follow a power law of exponent `zipf`; with 0, all are equally
    frequent. The time of a packet lies up to `disorder` seconds before its arrival, and never before `start`. The same
    arguments give the same packets, whatever `partitions` is.

    >>> from headgate.api.session import session
    >>> made = packets(session(master="local[2]"), 1000, hosts=10)
    >>> made.columns
    ['ts', 'srcIP', 'destIP', 'srcPort', 'destPort', 'len', 'proto', 'flags']
    >>> made.groupBy("srcIP").count().orderBy("count", ascending=False).first().srcIP
    '10.0.0.1'
    """
    if rows < 0:
        raise Error(f"packets: rows must not be below 0, and is {rows}")
    if not seconds > 0:
        raise Error(f"packets: seconds must be above 0, and is {seconds}")
    source = PacketSource(
        rate=max(rows, 1) / seconds,
        hosts=hosts,
        zipf=zipf,
        seed=seed,
        start=start,
        disorder=disorder,
        partitions=partitions,
    )
    return source.read(spark, 0, rows)


@dataclass(frozen=True, kw_only=True)
class PacketSource(PacketRows):
    """A stream of packets, and the same packets by their row numbers.

    The stream is live: it follows the clock at its `rate`. With `rows_per_batch` it is not: then every batch has so
    many rows, for tests and backfills. It ends before row `rows`, which a stream that is not live must have.

    >>> from headgate.api.session import session
    >>> spark = session(master="local[2]").newSession()
    >>> source = PacketSource(rate=[(60, 1000), (10, 5000)], rows=90_000, rows_per_batch=10_000)
    >>> source.stream(spark).isStreaming
    True
    >>> source.read(spark, 60_000, 90_000, columns=["ts", "len"]).agg({"ts": "max"}).first()[0].second
    5
    """

    rows: int | None = None
    rows_per_batch: int | None = None
    partitions: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("rows", 0), ("rows_per_batch", 1), ("partitions", 1)):
            value = getattr(self, name)
            if value is not None:
                settled(
                    self, **{name: whole(f"packets: {name}", value, f"a whole number, {least} or more", least, Error)}
                )
        if self.rows_per_batch is not None and self.rows is None:
            raise Error("packets: rows must be given with rows_per_batch, as the end of the stream")

    @property
    def pace(self) -> Pace:
        """How far the stream goes."""
        return Pace(self, self.rows, self.rows_per_batch)

    def schema(self) -> StructType:
        """The columns of a packet."""
        return spark_schema(self.columns)

    def stream(self, spark: SparkSession, reader: DataStreamReader | None = None) -> DataFrame:
        """The packets as a streaming DataFrame, from a reader of the session's or a given one."""
        register(spark, PacketDataSource)
        pace = {"rows": self.rows, "rowsPerBatch": self.rows_per_batch}
        given = {name: value for name, value in pace.items() if value is not None}
        reader = (reader or spark.readStream).format(PacketDataSource.name()).schema(self.schema())
        return reader.options(**given, **self._options(spark)).load()

    def read(self, spark: SparkSession, start: int, end: int, columns: Sequence[str] | None = None) -> DataFrame:
        """The rows from `start` up to, not including, `end`, in order; with some columns, or all."""
        if not 0 <= start <= end:
            raise Error(f"packets: rows must be read from 0 on and forwards, not from {start} to {end}")
        names = self.columns if columns is None else columns
        if unknown := set(names) - set(self.columns):
            raise Error(f"packets: columns must be some of {', '.join(self.columns)}, not {', '.join(sorted(unknown))}")
        register(spark, PacketDataSource)
        # Without a column, a batch would not know how many rows it has.
        reader = spark.read.format(PacketDataSource.name()).schema(spark_schema(names or ["ts"]))
        return reader.options(first=start, last=end, **self._options(spark)).load().select(*names)

    def _options(self, spark: SparkSession) -> dict[str, str | int]:
        return {"packets": self.to_json(), "partitions": self.partitions or cores(spark)}
