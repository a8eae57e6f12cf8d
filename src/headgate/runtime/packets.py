"""Network packets made up by rule: the stream of the demonstration, the benchmarks and many tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from headgate.errors import Error

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_HOSTS = (1 << 24) - 1  # as many as 10.0.0.0/8 can name

_SERVICES = {"tcp": (443, 443, 443, 443, 80, 80, 22, 25), "udp": (53, 53, 53, 53, 443, 443, 123, 161)}


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

    How often a host appears falls with its rank as a power law of exponent `zipf` (0: all alike), from
    10.0.0.1 downwards. The time of a packet lies up to `disorder` seconds before its arrival, and never
    before `start`. The same arguments give the same packets, whatever `partitions`.

    >>> from headgate.runtime.session import session
    >>> made = packets(session(master="local[2]"), 1000, hosts=10)
    >>> made.columns
    ['ts', 'srcIP', 'destIP', 'srcPort', 'destPort', 'len', 'proto', 'flags']
    >>> made.groupBy("srcIP").count().orderBy("count", ascending=False).first().srcIP
    '10.0.0.1'
    """
    _check(rows=rows, seconds=seconds, hosts=hosts, zipf=zipf, disorder=disorder)
    draw = _Draw(seed)

    arrival = (F.col("id") + draw("arrival")) * (seconds * 1e6 / max(rows, 1))
    event = arrival - draw("delay") * F.least(arrival, F.lit(disorder * 1e6)) if disorder else arrival
    numbers = spark.range(0, rows, 1, partitions).select(
        F.floor(event).alias("micros"),
        _rank(draw("source"), hosts, zipf).alias("source"),
        _rank(draw("destination"), hosts, zipf).alias("destination"),
        _choose(draw("protocol"), {"tcp": 0.8, "udp": 0.18, "icmp": 0.02}).alias("proto"),
        _choose(draw("flags"), {"ACK": 0.85, "SYN": 0.06, "SYN_ACK": 0.05, "FIN": 0.04}).alias("flag"),
        draw("port").alias("port"),
        draw("service").alias("service"),
        draw("length").alias("length"),
    )

    proto, is_tcp = F.col("proto"), F.col("proto") == "tcp"
    return numbers.select(
        F.timestamp_micros(F.col("micros") + _micros(start)).alias("ts"),
        _address(F.col("source")).alias("srcIP"),
        _address(F.col("destination")).alias("destIP"),
        F.when(proto == "icmp", 0).otherwise(_integer(F.col("port"), 32768, 61000)).alias("srcPort"),
        F.when(is_tcp, _service("tcp")).when(proto == "udp", _service("udp")).otherwise(0).alias("destPort"),
        _length(is_tcp).alias("len"),
        proto,
        F.when(is_tcp, F.col("flag")).otherwise("").alias("flags"),
    )


class _Draw:
    """Uniform numbers in [0, 1) that depend only on the seed, the row's number and what they are for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, purpose: str) -> Column:
        hashed = F.xxhash64(F.col("id"), F.lit(self._seed).cast("long"), F.lit(purpose))
        # The upper 53 bits are what a double holds exactly, so that 1.0 itself cannot come out.
        return F.shiftrightunsigned(hashed, 11).cast("double") * 2.0**-53


def _rank(uniform: Column, hosts: int, exponent: float) -> Column:
    """The rank, from 1 to `hosts`, where a power law on [1, hosts + 1) has the number drawn below it."""
    top = float(hosts + 1)
    if exponent == 1:
        position = F.pow(F.lit(top), uniform)
    else:
        rise = 1 - exponent
        position = F.pow(1 + uniform * (top**rise - 1), F.lit(1 / rise))
    # Rounding may touch the upper end, which belongs to nobody.
    return F.least(F.floor(position), F.lit(hosts).cast("long"))


def _address(rank: Column) -> Column:
    octets = [F.shiftright(rank, shift).bitwiseAND(255).cast("string") for shift in (16, 8, 0)]
    return F.concat(F.lit("10."), octets[0], F.lit("."), octets[1], F.lit("."), octets[2])


def _choose(uniform: Column, shares: dict[str, float]) -> Column:
    """One of the names, each with its share of the draws."""
    *names, last = shares
    choice, reached = F.lit(last), 1 - shares[last]
    for name in reversed(names):
        choice = F.when(uniform < reached, name).otherwise(choice)
        reached -= shares[name]
    return choice


def _integer(uniform: Column, low: int, high: int) -> Column:
    """A whole number in [low, high)."""
    return (F.floor(uniform * (high - low)) + low).cast("int")


def _service(protocol: str) -> Column:
    ports = F.array(*[F.lit(port) for port in _SERVICES[protocol]])
    return F.get(ports, _integer(F.col("service"), 0, len(_SERVICES[protocol])))


def _length(is_tcp: Column) -> Column:
    """Bytes: handshakes are short, of other tcp one half is full segments, other protocols are small."""
    length, flag = F.col("length"), F.col("flag")
    return (
        F.when(is_tcp & flag.isin("SYN", "SYN_ACK", "FIN"), _integer(length, 40, 61))
        .when(is_tcp & (length < 0.5), 1500)
        .when(is_tcp, _integer(length * 2 - 1, 40, 1500))
        .otherwise(_integer(length, 28, 576))
    )


def _micros(start: str) -> int:
    try:
        moment = datetime.fromisoformat(start)
    except ValueError:
        raise Error(f"packets: start must be a time such as '2026-01-01 00:00:00', not {start!r}") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _check(*, rows: int, seconds: float, hosts: int, zipf: float, disorder: float) -> None:
    if rows < 0:
        raise Error(f"packets: rows must not be below 0, and is {rows}")
    if not seconds > 0:
        raise Error(f"packets: seconds must be above 0, and is {seconds}")
    if not 1 <= hosts <= MOST_HOSTS:
        raise Error(f"packets: hosts must lie between 1 and {MOST_HOSTS}, and is {hosts}")
    if not zipf >= 0:
        raise Error(f"packets: zipf must not be below 0, and is {zipf}")
    if not disorder >= 0:
        raise Error(f"packets: disorder must not be below 0, and is {disorder}")
