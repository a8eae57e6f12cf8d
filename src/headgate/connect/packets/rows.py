"""Network packets by number: a row is a function of the parameters and its arrival number, however rows are cut."""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from headgate.errors import Error
from headgate.given import number, refused, settled, whole

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

MOST_HOSTS = (1 << 24) - 1  # as many as 10.0.0.0/8 can name
BATCH_ROWS = 1 << 15  # the columns of so many rows fit into a processor's cache

_PROTOCOLS = {"tcp": 0.8, "udp": 0.18, "icmp": 0.02}
_TCP, _, _ICMP = range(len(_PROTOCOLS))
_FLAGS = {"ACK": 0.85, "SYN": 0.06, "SYN_ACK": 0.05, "FIN": 0.04}
_ACK, _NO_FLAG = 0, len(_FLAGS)
_KEPT_ADDRESSES = 1 << 18  # more would take longer to make than most streams need them
_SERVICES = np.array(
    [[443, 443, 443, 443, 80, 80, 22, 25], [53, 53, 53, 53, 443, 443, 123, 161], [0] * 8], dtype=np.int32
)


class Rate(ABC):
    """How fast rows arrive over time: the number that has arrived, made of straight lines, over and over again."""

    @abstractmethod
    def _knots(self) -> tuple[Floats, Floats]:
        """Seconds, and the rows that have arrived by then, from (0, 0) to the end of the first round."""

    @cached_property
    def _curve(self) -> tuple[Floats, Floats]:
        return self._knots()

    def rows_by(self, seconds: ArrayLike) -> Floats:
        """How many rows have arrived by a time: row n is there once this has reached n + 1."""
        times, rows = self._curve
        return _follow(np.asarray(seconds, dtype=np.float64), times, rows)

    def time_of(self, row: ArrayLike) -> Floats:
        """The second in which so many rows have arrived: the inverse of `rows_by`, and the end of any pause."""
        times, rows = self._curve
        return _follow(np.asarray(row, dtype=np.float64), rows, times)


def _follow(x: Floats, xs: Floats, ys: Floats) -> Floats:
    """The height at x of the line through all points (xs, ys), repeated behind its end, and nowhere falling."""
    around = np.floor(x / xs[-1])
    rest = np.clip(x - around * xs[-1], 0, xs[-1])
    piece = np.searchsorted(xs[:-1], rest, side="right") - 1
    with np.errstate(divide="ignore"):  # The piece on the right of a jump is never the jump itself.
        slopes = np.diff(ys) / np.diff(xs)
    # Rounding must not lift the end of a piece above where the next one begins.
    within = np.minimum(ys[piece] + (rest - xs[piece]) * slopes[piece], ys[piece + 1])
    reached: Floats = np.minimum(around * ys[-1] + within, (around + 1) * ys[-1])
    return reached


@dataclass(frozen=True)
class Steps(Rate):
    """Rates one after the other, as (seconds, rows a second); the last one holds for ever.

    >>> steps = Steps([(10, 100), (5, 0), (10, 400)])
    >>> [float(steps.rows_by(seconds)) for seconds in (5, 10, 15, 100)]
    [500.0, 1000.0, 1000.0, 35000.0]
    >>> float(steps.time_of(1400))
    16.0
    """

    steps: Sequence[tuple[float, float]]

    def __post_init__(self) -> None:
        _require(bool(self.steps), "rate must have a step, such as (60, 1000)")
        for seconds, rate in _pairs("rate", self.steps):
            _require(0 < seconds < math.inf, f"rate must have steps of more than 0 seconds, not of {seconds}")
            _require(0 <= rate < math.inf, f"rate must not be below 0, and is {rate}")
        _require(self.steps[-1][1] > 0, "rate must end with a step above 0, which then holds for ever")

    def _knots(self) -> tuple[Floats, Floats]:
        seconds, rates = np.array(self.steps, dtype=np.float64).T
        seconds[-1] = 1e12  # Longer than any stream, and in microseconds still a whole number of 64 bits.
        return _sums(seconds), _sums(seconds * rates)


@dataclass(frozen=True)
class Bursts(Rate):
    """A base rate, and at the end of `every` so many seconds a burst of `factor` times the rate, `lasting` seconds.

    >>> bursts = Bursts(base=100, factor=10, every=60, lasting=5)
    >>> [float(bursts.rows_by(seconds)) for seconds in (55, 60, 115)]
    [5500.0, 10500.0, 16000.0]
    """

    base: float
    factor: float
    every: float
    lasting: float

    def __post_init__(self) -> None:
        _require(0 < self.base < math.inf, f"rate must have a base above 0, and it is {self.base}")
        _require(0 < self.factor < math.inf, f"rate must have a factor above 0, and it is {self.factor}")
        _require(0 < self.lasting < self.every < math.inf, "rate must have bursts that are shorter than `every`")

    def _knots(self) -> tuple[Floats, Floats]:
        seconds = np.array([self.every - self.lasting, self.lasting])
        return _sums(seconds), _sums(seconds * self.base * np.array([1, self.factor]))


@dataclass(frozen=True)
class Diurnal(Rate):
    """A rate that swings around `base` by the share `amplitude` of it, as a sine of `period` seconds.

    >>> day = Diurnal(base=100, amplitude=0.5, period=86400)
    >>> [int(day.rows_by(hours * 3600)) for hours in (12, 24)]
    [5695098, 8640000]
    """

    base: float
    amplitude: float
    period: float = 86400.0

    def __post_init__(self) -> None:
        _require(0 < self.base < math.inf, f"rate must have a base above 0, and it is {self.base}")
        _require(0 <= self.amplitude <= 1, f"rate must have an amplitude from 0 to 1, and it is {self.amplitude}")
        _require(0 < self.period < math.inf, f"rate must have a period above 0, and it is {self.period}")

    def _knots(self) -> tuple[Floats, Floats]:
        # The curve has no closed inverse: 1024 straight pieces differ from it by a millionth of a period.
        angle = np.linspace(0, 2 * np.pi, 1025)
        turns = angle / (2 * np.pi)
        risen = turns + self.amplitude * (1 - np.cos(angle)) / (2 * np.pi)
        return turns * self.period, risen * (self.base * self.period)


_PROFILES: dict[str, type[Rate]] = {"Steps": Steps, "Bursts": Bursts, "Diurnal": Diurnal}


def _sums(amounts: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(amounts)])


@dataclass(frozen=True, kw_only=True)
class PacketRows:
    """What packets there are: `batch` makes those of any range of arrival numbers, which count from 0.

    - `rate`: rows a second, steps as [(seconds, rate), ...], or `Steps`, `Bursts` or `Diurnal`.
    - `hosts`, `zipf`: how often a host appears falls with its rank as a power law of exponent `zipf` (0: all
      alike), from 10.0.0.1 downwards.
    - `start`: the time at which the first packet can arrive (UTC unless it says otherwise).
    - `disorder`: the time of a packet lies up to so many seconds before its arrival, and never before `start`.
    - `block`: the packets of each so many seconds come last one first, as in exports sorted by something else.
    - `links`: the share of each link in the packets; there is a column `link` then.
    - `skews`: by how many seconds the times of a link lag behind the others'.
    - `lulls`: when a link sends nothing, as (from, to) in seconds after `start`: others send its packets.

    >>> made = PacketRows(hosts=3)
    >>> made.batch(0, 4, ["srcIP"])["srcIP"].to_pylist()
    ['10.0.0.1', '10.0.0.3', '10.0.0.2', '10.0.0.1']
    >>> made.batch(2, 4, ["srcIP"])["srcIP"].to_pylist()
    ['10.0.0.2', '10.0.0.1']
    """

    rate: float | Sequence[tuple[float, float]] | Rate = 1000.0
    hosts: int = 5000
    zipf: float = 1.1
    seed: int = 0
    start: str = "2026-01-01 00:00:00"
    disorder: float = 0.0
    block: float = 0.0
    links: Mapping[str, float] = field(default_factory=dict)
    skews: Mapping[str, float] = field(default_factory=dict)
    lulls: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settled(self, hosts=_whole("hosts", self.hosts), seed=_whole("seed", self.seed))
        _require(1 <= self.hosts <= MOST_HOSTS, f"hosts must lie between 1 and {MOST_HOSTS}, and is {self.hosts}")
        if not isinstance(self.rate, Rate | Sequence):
            settled(self, rate=_number("rate", self.rate))
        for name in ("zipf", "disorder", "block"):
            value = _number(name, getattr(self, name))
            settled(self, **{name: value})
            _require(0 <= value < math.inf, f"{name} must not be below 0, and is {value:g}")
        self._check_links()
        _ = self.profile, self.epoch  # Both are checked where they are made.

    def _check_links(self) -> None:
        for name in ("links", "skews", "lulls"):
            if not isinstance(getattr(self, name), Mapping):
                raise refused(f"packets: {name}", getattr(self, name), "a dictionary by the names of links", Error)
        if self.links:
            shares = [_number(f"links: {link}", share) for link, share in self.links.items()]
            _require(min(shares) > 0, "links must have shares above 0")
            _require(math.isclose(sum(shares), 1, rel_tol=1e-6), f"links must share 1 in all, not {sum(shares):g}")
        for name in ("skews", "lulls"):
            unknown = getattr(self, name).keys() - self.links.keys()
            _require(not unknown, f"{name} must name one of the links, not {', '.join(sorted(unknown))}")
        for link, skew in self.skews.items():
            _require(
                0 <= _number(f"skews: {link}", skew) < math.inf,
                f"skews must not be below 0, and that of {link} is {skew}",
            )
        for link, lulls in self.lulls.items():
            for begin, end in _pairs(f"lulls: {link}", lulls):
                _require(0 <= begin < end, f"lulls must end after they begin, not as ({begin:g}, {end:g}) of {link}")
        if self.lulls:
            silent = self.shares.since[self.shares.reached[:, -1] == 0]
            _require(
                not silent.size, f"lulls must leave a link awake, and at second {silent.min(initial=np.inf):g} do not"
            )

    @cached_property
    def profile(self) -> Rate:
        """The rate over time, however it was given."""
        match self.rate:
            case Rate():
                return self.rate
            case float():
                _require(0 < self.rate < math.inf, f"rate must be above 0, and is {self.rate:g}")
                return Steps([(1.0, self.rate)])
            case _:
                return Steps(self.rate)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name in _COLUMNS if name != "link" or self.links]

    def batches(self, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows from `first` up to, not including, `last`, in batches of a convenient size."""
        for begin in range(first, last, BATCH_ROWS):
            yield self.batch(begin, min(begin + BATCH_ROWS, last), columns)

    def batch(self, first: int, last: int, columns: Sequence[str]) -> pa.RecordBatch:
        """The rows from `first` up to, not including, `last`."""
        chunk = _Chunk(self, np.arange(first, last, dtype=np.int64))
        return pa.RecordBatch.from_arrays(
            [_COLUMNS[name].make(chunk) for name in columns], schema=arrow_schema(columns)
        )

    def to_json(self) -> str:
        """The parameters as a text that `from_json` reads."""
        given = {each.name: getattr(self, each.name) for each in fields(PacketRows)}
        return json.dumps(given, default=lambda rate: {type(rate).__name__: asdict(rate)})

    @staticmethod
    def from_json(text: str) -> PacketRows:
        """The parameters of a text that `to_json` made.

        >>> made = PacketRows(rate=Bursts(100, 10, 60, 5), links={"main1": 0.5, "main2": 0.5})
        >>> PacketRows.from_json(made.to_json()) == made
        True
        """
        given: dict[str, Any] = json.loads(text)
        if isinstance(given["rate"], dict):
            [(profile, parameters)] = given["rate"].items()
            given["rate"] = _PROFILES[profile](**parameters)
        return PacketRows(**given)

    @cached_property
    def epoch(self) -> int:
        """When the first packet can arrive, in microseconds since 1970."""
        try:
            moment = datetime.fromisoformat(self.start)
        except (TypeError, ValueError):
            raise Error(f"packets: start must be a time such as '2026-01-01 00:00:00', not {self.start!r}") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    @cached_property
    def shares(self) -> _Shares:
        """The shares of the links that are awake, over time."""
        edges = {edge for lulls in self.lulls.values() for lull in lulls for edge in lull}
        since = sorted(edges | {0.0})
        awake = [
            [not any(begin <= time < end for begin, end in self.lulls.get(link, ())) for link in self.links]
            for time in since
        ]
        return _Shares(np.array(since), np.cumsum(np.array(awake) * list(self.links.values()), axis=1))


class _Shares(NamedTuple):
    since: Floats
    """The times at which links fall asleep or wake up."""
    reached: Floats
    """From each of these times on, for each link, its share together with those of the links before it."""


class _Chunk:
    """The packets of some row numbers, by column; what several columns need is made once."""

    def __init__(self, made: PacketRows, rows: Integers) -> None:
        self._made = made
        self._rows = rows

    def ts(self) -> pa.Array:
        made, rows = self._made, self._rows
        event = self._time_of(self._mirrored() if made.block else rows)
        if made.disorder:
            event = event - self._draw("delay") * np.minimum(event, made.disorder)
        micros = np.floor(event * 1e6).astype(np.int64) + made.epoch
        if made.skews:
            micros -= np.array([round(made.skews.get(link, 0) * 1e6) for link in made.links])[self._link]
        return pa.array(micros).view(_TIME)

    def source(self) -> pa.Array:
        return self._address("source")

    def destination(self) -> pa.Array:
        return self._address("destination")

    def source_port(self) -> pa.Array:
        return pa.array(np.where(self._protocol == _ICMP, 0, _integers(self._draw("port"), 32768, 61000)))

    def destination_port(self) -> pa.Array:
        return pa.array(_SERVICES[self._protocol, _integers(self._draw("service"), 0, _SERVICES.shape[1])])

    def length(self) -> pa.Array:
        """Bytes: handshakes are short, of other tcp one half is full segments, other protocols are small."""
        drawn, tcp = self._draw("length"), self._protocol == _TCP
        data = np.where(drawn < 0.5, 1500, _integers(drawn * 2 - 1, 40, 1500))
        bytes_of_tcp = np.where(self._flag == _ACK, data, _integers(drawn, 40, 61))
        return pa.array(np.where(tcp, bytes_of_tcp, _integers(drawn, 28, 576)))

    def protocol(self) -> pa.Array:
        return _named([*_PROTOCOLS], self._protocol)

    def flags(self) -> pa.Array:
        return _named([*_FLAGS, ""], np.where(self._protocol == _TCP, self._flag, _NO_FLAG))

    def link(self) -> pa.Array:
        return _named([*self._made.links], self._link)

    @cached_property
    def _protocol(self) -> Integers:
        return _choose(self._draw("protocol"), _PROTOCOLS)

    @cached_property
    def _flag(self) -> Integers:
        return _choose(self._draw("flags"), _FLAGS)

    @cached_property
    def _link(self) -> Integers:
        since, reached = self._made.shares
        now = np.searchsorted(since, self._time_of(self._rows), side="right") - 1
        drawn = self._draw("link") * reached[now, -1]
        passed: Integers = np.count_nonzero(reached[now, :-1] <= drawn[:, np.newaxis], axis=1)
        return passed

    def _address(self, purpose: str) -> pa.Array:
        hosts = self._made.hosts
        rank = np.searchsorted(_power_law(hosts, self._made.zipf), self._draw(purpose), side="right")
        return _all_addresses(hosts).take(pa.array(rank)) if hosts <= _KEPT_ADDRESSES else _addresses(rank)

    def _time_of(self, rows: Integers) -> Floats:
        """When rows arrive: each at some time between its number and the next."""
        return self._made.profile.time_of(rows + _uniform(self._made.seed, "arrival", rows))

    def _mirrored(self) -> Integers:
        """For each row the one that stands at its place from the other end of their block."""
        block, profile = self._made.block, self._made.profile
        near = np.unique(np.floor(profile.time_of(self._rows) / block))
        # Rounding may put a row that begins or ends a block into its neighbour: the edges decide.
        begins = np.unique(near[:, np.newaxis] + range(-1, 3)).clip(0) * block
        edges = np.ceil(profile.rows_by(begins)).astype(np.int64)
        behind = np.searchsorted(edges, self._rows, side="right")
        return edges[behind - 1] + edges[behind] - 1 - self._rows

    def _draw(self, purpose: str) -> Floats:
        return _uniform(self._made.seed, purpose, self._rows)


class _Column(NamedTuple):
    type: pa.DataType
    make: Callable[[_Chunk], pa.Array]


_TIME, _TEXT, _NUMBER = pa.timestamp("us", tz="UTC"), pa.string(), pa.int32()
_COLUMNS = {
    "ts": _Column(_TIME, _Chunk.ts),
    "srcIP": _Column(_TEXT, _Chunk.source),
    "destIP": _Column(_TEXT, _Chunk.destination),
    "srcPort": _Column(_NUMBER, _Chunk.source_port),
    "destPort": _Column(_NUMBER, _Chunk.destination_port),
    "len": _Column(_NUMBER, _Chunk.length),
    "proto": _Column(_TEXT, _Chunk.protocol),
    "flags": _Column(_TEXT, _Chunk.flags),
    "link": _Column(_TEXT, _Chunk.link),
}


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """The Arrow types of some of the columns."""
    return pa.schema([(name, _COLUMNS[name].type) for name in columns])


def _uniform(seed: int, purpose: str, rows: Integers) -> Floats:
    """Numbers in [0, 1) that depend only on the seed, what they are for, and the row's number.

    The counter is scrambled as in SplitMix64: two rounds of folding the upper bits down and multiplying.
    """
    bits = rows.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits += _key(seed, purpose)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    # The upper 53 bits are what a double holds exactly, so that 1.0 itself cannot come out.
    bits >>= np.uint64(11)
    return np.multiply(bits.view(np.int64), 2.0**-53, dtype=np.float64)


@lru_cache
def _key(seed: int, purpose: str) -> np.uint64:
    digest = hashlib.blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


@lru_cache(maxsize=4)
def _power_law(hosts: int, exponent: float) -> Floats:
    """For each host the chance that one of those up to it is drawn."""
    reached: Floats = np.cumsum(np.arange(1, hosts + 1, dtype=np.float64) ** -exponent)
    reached /= reached[-1]
    return reached


@lru_cache(maxsize=4)
def _all_addresses(hosts: int) -> pa.Array:
    return _addresses(np.arange(hosts))


def _addresses(hosts: Integers) -> pa.Array:
    """The addresses of hosts that are counted from 0: 10.0.0.1 comes first."""
    octets = [_named([str(octet) for octet in range(256)], (hosts + 1) >> shift & 255) for shift in (16, 8, 0)]
    return pc.binary_join_element_wise("10", *octets, ".")


def _choose(uniform: Floats, shares: Mapping[str, float]) -> Integers:
    """The number of one of the names, each with its share of the draws."""
    return np.searchsorted(np.cumsum([*shares.values()])[:-1], uniform, side="right")


def _integers(uniform: Floats, low: int, high: int) -> NDArray[np.int32]:
    """Whole numbers in [low, high)."""
    return (uniform * (high - low)).astype(np.int32) + np.int32(low)


def _named(names: Sequence[str], numbers: Integers) -> pa.Array:
    return pa.array(names, _TEXT).take(pa.array(numbers))


def _whole(name: str, value: object) -> int:
    return whole(f"packets: {name}", value, "a whole number", error=Error)


def _number(name: str, value: object) -> float:
    return number(f"packets: {name}", value, "a number", lambda _: True, error=Error)


def _pairs(name: str, pairs: Iterable[tuple[object, object]]) -> list[tuple[float, float]]:
    try:
        return [(_number(name, first), _number(name, second)) for first, second in pairs]
    except (TypeError, ValueError):
        raise refused(f"packets: {name}", pairs, "pairs of numbers, such as [(60, 1000)]", Error) from None


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise Error(f"packets: {what}")
