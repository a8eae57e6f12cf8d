"""Packets by number: a row depends only on the parameters and its arrival number, however rows are cut into batches."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.connect.packets.checks import number, pairs_of, require, whole_number
from headgate.connect.packets.chunk import COLUMNS, Chunk, Shares, arrow_schema
from headgate.connect.packets.rates import PROFILES, Rate, Steps
from headgate.errors import Error
from headgate.given import refused, settled

#: As many hosts as 10.0.0.0/8 can name.
MOST_HOSTS = (1 << 24) - 1
#: The columns of so many rows fit into a processor's cache.
BATCH_ROWS = 1 << 15


@dataclass(frozen=True, kw_only=True)
class PacketRows:
    """Says which packets there are. `batch` makes the packets of any range of arrival numbers, which count from 0.

    - `rate`: rows per second, steps as [(seconds, rate), ...], or `Steps`, `Bursts` or `Diurnal`.
    - `hosts`, `zipf`: 10.0.0.1 is the most frequent host. The others follow a power law of exponent `zipf`; with 0,
      all are equally frequent.
    - `start`: the time at which the first packet can arrive (UTC unless it says otherwise).
    - `disorder`: the time of a packet lies up to so many seconds before its arrival, and never before `start`.
    - `block`: the packets of every so many seconds come in reverse, as in exports sorted by something else.
    - `links`: the share of each link in the packets. With it, packets have a column `link`.
    - `skews`: by how many seconds the times of a link are earlier than those of the others.
    - `lulls`: when a link sends nothing, as (from, to) in seconds after `start`. Other links send its packets.

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
        settled(self, hosts=whole_number("hosts", self.hosts), seed=whole_number("seed", self.seed))
        require(1 <= self.hosts <= MOST_HOSTS, f"hosts must lie between 1 and {MOST_HOSTS}, and is {self.hosts}")
        if not isinstance(self.rate, Rate | Sequence):
            settled(self, rate=number("rate", self.rate))
        for name in ("zipf", "disorder", "block"):
            value = number(name, getattr(self, name))
            settled(self, **{name: value})
            require(0 <= value < math.inf, f"{name} must not be below 0, and is {value:g}")
        self._check_links()
        _ = self.profile, self.epoch  # Making them checks them.

    def _check_links(self) -> None:
        for name in ("links", "skews", "lulls"):
            if not isinstance(getattr(self, name), Mapping):
                raise refused(f"packets: {name}", getattr(self, name), "a dictionary by the names of links", Error)
        if self.links:
            shares = [number(f"links: {link}", share) for link, share in self.links.items()]
            require(min(shares) > 0, "links must have shares above 0")
            require(math.isclose(sum(shares), 1, rel_tol=1e-6), f"links must share 1 in all, not {sum(shares):g}")
        for name in ("skews", "lulls"):
            unknown = getattr(self, name).keys() - self.links.keys()
            require(not unknown, f"{name} must name one of the links, not {', '.join(sorted(unknown))}")
        for link, skew in self.skews.items():
            require(
                0 <= number(f"skews: {link}", skew) < math.inf,
                f"skews must not be below 0, and that of {link} is {skew}",
            )
        for link, lulls in self.lulls.items():
            for begin, end in pairs_of(f"lulls: {link}", lulls):
                require(0 <= begin < end, f"lulls must end after they begin, not as ({begin:g}, {end:g}) of {link}")
        if self.lulls:
            silent = self.shares.since[self.shares.reached[:, -1] == 0]
            require(
                not silent.size, f"lulls must leave a link awake, and at second {silent.min(initial=np.inf):g} do not"
            )

    @cached_property
    def profile(self) -> Rate:
        """The rate over time, however it was given."""
        match self.rate:
            case Rate():
                return self.rate
            case float():
                require(0 < self.rate < math.inf, f"rate must be above 0, and is {self.rate:g}")
                return Steps([(1.0, self.rate)])
            case _:
                return Steps(self.rate)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name for name in COLUMNS if name != "link" or self.links]

    def batches(self, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows from `first` up to, not including, `last`, in batches of a convenient size."""
        for begin in range(first, last, BATCH_ROWS):
            yield self.batch(begin, min(begin + BATCH_ROWS, last), columns)

    def batch(self, first: int, last: int, columns: Sequence[str]) -> pa.RecordBatch:
        """The rows from `first` up to, not including, `last`."""
        chunk = Chunk(self, np.arange(first, last, dtype=np.int64))
        return pa.RecordBatch.from_arrays([COLUMNS[name].make(chunk) for name in columns], schema=arrow_schema(columns))

    def to_json(self) -> str:
        """The parameters as text, for `from_json`."""
        given = {each.name: getattr(self, each.name) for each in fields(PacketRows)}
        return json.dumps(given, default=lambda rate: {type(rate).__name__: asdict(rate)})

    @staticmethod
    def from_json(text: str) -> PacketRows:
        """The parameters in a text from `to_json`.

        >>> from headgate.connect.packets.rates import Bursts
        >>> made = PacketRows(rate=Bursts(100, 10, 60, 5), links={"main1": 0.5, "main2": 0.5})
        >>> PacketRows.from_json(made.to_json()) == made
        True
        """
        given: dict[str, Any] = json.loads(text)
        if isinstance(given["rate"], dict):
            [(profile, parameters)] = given["rate"].items()
            given["rate"] = PROFILES[profile](**parameters)
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
    def shares(self) -> Shares:
        """The shares of the links that are awake, over time."""
        edges = {edge for lulls in self.lulls.values() for lull in lulls for edge in lull}
        since = sorted(edges | {0.0})
        awake = [
            [not any(begin <= time < end for begin, end in self.lulls.get(link, ())) for link in self.links]
            for time in since
        ]
        return Shares(np.array(since), np.cumsum(np.array(awake) * list(self.links.values()), axis=1))
