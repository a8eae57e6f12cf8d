"""The columns of packets: how each is made from row numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.connect.packets.rates import Floats

if TYPE_CHECKING:
    from headgate.connect.packets.rows import PacketRows

Integers: TypeAlias = NDArray[np.int64]

_PROTOCOLS = {"tcp": 0.8, "udp": 0.18, "icmp": 0.02}
_TCP, _, _ICMP = range(len(_PROTOCOLS))
_FLAGS = {"ACK": 0.85, "SYN": 0.06, "SYN_ACK": 0.05, "FIN": 0.04}
_ACK, _NO_FLAG = 0, len(_FLAGS)
#: Addresses of more hosts would take longer to make than most streams need them.
_KEPT_ADDRESSES = 1 << 18
_SERVICES = np.array(
    [[443, 443, 443, 443, 80, 80, 22, 25], [53, 53, 53, 53, 443, 443, 123, 161], [0] * 8], dtype=np.int32
)


class Shares(NamedTuple):
    since: Floats
    """The times at which links fall asleep or wake up."""
    reached: Floats
    """For each of these times, the shares of the links, summed up from the first link on."""


class Chunk:
    """The packets of some row numbers, column by column. What several columns need is made once."""

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
        """Bytes: handshakes are short, half of all other tcp packets are full segments, other protocols are small."""
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
        """For each row the one that takes its place when its block is reversed."""
        block, profile = self._made.block, self._made.profile
        near = np.unique(np.floor(profile.time_of(self._rows) / block))
        # Rounding may put the first or last row of a block into the next block. The edges decide.
        begins = np.unique(near[:, np.newaxis] + range(-1, 3)).clip(0) * block
        edges = np.ceil(profile.rows_by(begins)).astype(np.int64)
        behind = np.searchsorted(edges, self._rows, side="right")
        return edges[behind - 1] + edges[behind] - 1 - self._rows

    def _draw(self, purpose: str) -> Floats:
        return _uniform(self._made.seed, purpose, self._rows)


class Column(NamedTuple):
    type: pa.DataType
    make: Callable[[Chunk], pa.Array]


_TIME, _TEXT, _NUMBER = pa.timestamp("us", tz="UTC"), pa.string(), pa.int32()
COLUMNS = {
    "ts": Column(_TIME, Chunk.ts),
    "srcIP": Column(_TEXT, Chunk.source),
    "destIP": Column(_TEXT, Chunk.destination),
    "srcPort": Column(_NUMBER, Chunk.source_port),
    "destPort": Column(_NUMBER, Chunk.destination_port),
    "len": Column(_NUMBER, Chunk.length),
    "proto": Column(_TEXT, Chunk.protocol),
    "flags": Column(_TEXT, Chunk.flags),
    "link": Column(_TEXT, Chunk.link),
}


def arrow_schema(columns: Sequence[str]) -> pa.Schema:
    """The Arrow types of some of the columns."""
    return pa.schema([(name, COLUMNS[name].type) for name in columns])


def _uniform(seed: int, purpose: str, rows: Integers) -> Floats:
    """Numbers in [0, 1) that depend only on the seed, the purpose, and the number of the row.

    The counter is scrambled as in SplitMix64: two rounds of folding the upper bits down and multiplying.
    """
    bits = rows.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits += _key(seed, purpose)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    # A double holds 53 bits exactly, so 1.0 itself cannot come out.
    bits >>= np.uint64(11)
    return np.multiply(bits.view(np.int64), 2.0**-53, dtype=np.float64)


@lru_cache
def _key(seed: int, purpose: str) -> np.uint64:
    digest = hashlib.blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


@lru_cache(maxsize=4)
def _power_law(hosts: int, exponent: float) -> Floats:
    """For each host the chance that it, or one before it, is drawn."""
    reached: Floats = np.cumsum(np.arange(1, hosts + 1, dtype=np.float64) ** -exponent)
    reached /= reached[-1]
    return reached


@lru_cache(maxsize=4)
def _all_addresses(hosts: int) -> pa.Array:
    return _addresses(np.arange(hosts))


def _addresses(hosts: Integers) -> pa.Array:
    """The addresses of hosts, which count from 0; the first one is 10.0.0.1."""
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
