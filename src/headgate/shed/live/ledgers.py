"""The windows and groups that queries under `subset` drop: decided before their first tuple, kept until they close."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.plan.logical.nodes import ROW_NUM
from headgate.progress.closing import Closing
from headgate.progress.place import read
from headgate.shed.fate import Fate
from headgate.shed.losses import Groups, Windows
from headgate.shed.subset.dropped import Dropped, WindowRun
from headgate.shed.subset.groups import GroupRange, GroupShares
from headgate.shed.subset.ledger import Ledger, decide
from headgate.shed.subset.needs import Range, merged, without
from headgate.shed.subset.rules import chain, droppable, early_share, pipeline

if TYPE_CHECKING:
    from headgate.plan.stream.stages import Continuous, Stage
    from headgate.protocol.manifest import Manifest
    from headgate.shed.losses import Loss
    from headgate.windows import Number, Sliding

#: A stream, and whether its tuples are counted, or else placed where they say.
Axis = tuple[str, bool]
#: The first and the last place of what a batch holds.
Spans = Mapping[Axis, tuple["Number", "Number"]]


class Subsets:
    """The ledgers of queries that drop windows, and the shares of queries that drop groups."""

    def __init__(self, queries: Mapping[str, Continuous], losses: Mapping[str, Loss], state: Mapping[str, Any]) -> None:
        self.by_window = {name: loss for name, loss in losses.items() if isinstance(loss, Windows)}
        """The queries that drop windows."""
        self.by_group = [name for name, loss in losses.items() if isinstance(loss, Groups)]
        """The queries that drop groups."""
        self.names = [name for name, loss in losses.items() if isinstance(loss, Windows | Groups)]
        self.windows: dict[str, tuple[Sliding, ...]] = {name: chain(queries[name]) for name in self.names}
        self._queries = {name: queries[name] for name in self.names}
        self.ledgers: dict[str, Ledger] = {}
        self.shares: dict[str, GroupShares] = {}
        self.gone: dict[str, Dropped] = {}
        """The windows that have been dropped, of the queries that drop windows."""
        self.restore(state)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes over what was decided."""
        for name, ledger in state.get("ledgers", {}).items():
            if name in self.by_window:
                self.ledgers[name] = Ledger.restored(name, self.windows[name], self.by_window[name].gap, ledger)
        for name, gone in state.get("gone", {}).items():
            if name in self.by_window:
                self.gone[name] = Dropped.restored(gone)
        for name, shares in state.get("shares", {}).items():
            if name in self.by_group:
                self.shares[name] = GroupShares.restored(self.windows[name], shares)

    def state(self) -> dict[str, Any]:
        """What is decided, as JSON has it."""
        found: dict[str, Any] = {}
        if self.ledgers:
            found["ledgers"] = {name: ledger.state() for name, ledger in self.ledgers.items()}
            found["gone"] = {name: gone.state() for name, gone in self.gone.items()}
        if self.shares:
            found["shares"] = {name: shares.state() for name, shares in self.shares.items()}
        return found

    def reached(self, query: str, manifest: Manifest) -> Number | None:
        """The place after the last tuple of a query's streams; None if there was none yet."""
        places = [come(manifest, axis) for axis in self.axes(query)]
        return max((place + 1 for place in places if place is not None), default=None)

    def axes(self, query: str) -> list[Axis]:
        """What the windows of a query at its input are over."""
        return [(stream, self.windows[query][0].attr == ROW_NUM) for stream in self._queries[query].streams]

    def decide(
        self,
        manifest: Manifest,
        spans: Spans,
        drops: Mapping[str, float],
        together: Sequence[Sequence[str]] = (),
        suspended: Collection[str] = (),
    ) -> None:
        """Decides the fates of the windows whose first tuples a batch within these spans may bring.

        `drops` are the fractions to drop: a query that is not named drops nothing now. Queries that stand `together`
        are decided as one. Of queries that are suspended, every window is dropped.
        """
        known: dict[str, Number] = {}
        before = {name: ledger.decided for name, ledger in self.ledgers.items()}
        for name in self.names:
            streams = [spans[axis] for axis in self.axes(name) if axis in spans]
            if not streams:
                continue
            begin, end = min(low for low, _ in streams), max(high for _, high in streams)
            seen = self.reached(name, manifest)
            # Windows that end before the first tuple would be dropped for nothing.
            at = seen if seen is not None else begin - pipeline(self.windows[name], 1).extent + 1
            known[name] = end + 1
            self._begin(name, at)
        for name in known.keys() & set(suspended):
            self.ledgers[name] = self.ledgers[name].suspend(known.pop(name))
        apart = [[name] for name in self.by_window if not any(name in group for group in together)]
        for group in [*together, *apart]:
            if names := [name for name in group if name in known]:
                up_to, drop = max(known[n] for n in names), drops.get(names[0], 0.0)
                decided = decide([self.ledgers[n] for n in names], up_to, drop)
                self.ledgers.update(zip(names, decided, strict=True))
        for name, ledger in self.ledgers.items():
            self.gone[name] = self.gone.get(name, Dropped()).then(ledger.dropped(before.get(name)))
        for name in self.by_group:
            if name in known:
                self._hold(name, manifest, 1 - drops.get(name, 0.0))

    def _begin(self, name: str, at: Number) -> None:
        """Windows before a place have tuples: they are kept, if nothing else was decided."""
        if name in self.by_group:
            return
        if name not in self.ledgers:
            self.ledgers[name] = Ledger.begun(name, self.windows[name], self.by_window[name].gap, at)
        elif (ledger := self.ledgers[name]).decided < at:
            self.ledgers[name] = replace(ledger, decided=at, until=max(at, ledger.until))

    def _hold(self, name: str, manifest: Manifest, share: float) -> None:
        seen = self.reached(name, manifest)
        if name not in self.shares:
            self.shares[name] = GroupShares(self.windows[name])
            if seen is None:
                # Nothing has come yet, so the share holds for all windows.
                self.shares[name] = replace(self.shares[name], steps=((-(1 << 62), share),))
        if seen is not None:
            steps = self.shares[name].steps
            if (steps[-1][1] if steps else 1.0) != share:
                at = max(seen, steps[-1][0]) if steps else seen
                self.shares[name] = self.shares[name].hold(at, share)

    def saved(self, query: str) -> float:
        """The part of its tuples that goes unread for each window that is dropped, or for each group."""
        return early_share(pipeline(self.windows[query], self.by_window[query].gap)) if query in self.by_window else 1.0

    def dropped(self, warm: bool = False) -> dict[str, tuple[Range, ...]]:
        """By query, the places that no kept window needs, for queries that have dropped some.

        Looking whether a tuple lies there costs time, so queries that drop nothing are left out, except to keep the
        code `warm`.
        """
        found: dict[str, tuple[Range, ...]] = dict.fromkeys(self.ledgers, ()) if warm else {}
        for name, ledger in self.ledgers.items():
            if ledger.drops:
                low, high = ledger.drops[0][0], ledger.drops[-1][1] + ledger.grid.extent
                found[name] = without(ledger.needed(low, high), low, high)
        return found

    def gone_from(self, query: str) -> tuple[Sliding, tuple[WindowRun, ...]]:
        """The windows that a query answers, and the numbers of the last ones that it dropped."""
        return self.windows[query][-1], self.gone.get(query, Dropped()).runs

    def pieces(self, warm: bool = False) -> dict[str, tuple[GroupRange, ...]]:
        """By query, the shares of groups that are kept, by places, for queries that drop some or are kept `warm`."""
        found = {}
        for name, shares in self.shares.items():
            ends = [at for at, _ in shares.steps] or [0]
            extent = pipeline(self.windows[name], 1).extent
            low, high = ends[0] - 2 * extent, (1 << 62)
            if warm or any(share < 1 for _, share in shares.steps):
                found[name] = shares.pieces(low, high) if shares.steps else (GroupRange(low, high, 1.0),)
        return found

    def fates(self, stage: Stage, closing: Closing) -> Fate | None:
        """What has become of the windows of a stage that close."""
        name, closing_windows = stage.query, range(closing.first, closing.last + 1)
        if name in self.shares:
            start = droppable(stage.window).bounds
            return Fate(shares={k: self.shares[name].share(start(k)[0]) for k in closing_windows})
        if name not in self.ledgers:
            return None
        ledger = self.ledgers[name]
        if stage.name == name:
            return Fate(dropped=frozenset(k for k in closing_windows if not ledger.kept(k)))
        # Of inner aggregates, the windows that no kept outer window needs.
        level = next(i for i, s in enumerate(self._aggregating(name), 1) if s.name == stage.name)
        window = droppable(stage.window)
        low, high = window.bounds(closing.first)[0], window.bounds(closing.last)[0] + 1
        needed = ledger.needed(low, high, level)
        starts = {k: window.bounds(k)[0] for k in closing_windows}
        return Fate(dropped=frozenset(k for k, at in starts.items() if not any(a <= at < b for a, b in needed)))

    def _aggregating(self, query: str) -> list[Stage]:
        return [stage for stage in self._queries[query].stages if stage.aggregate is not None]

    def forget(self, manifest: Manifest) -> None:
        """Forgets what only closed windows needed."""
        for name, ledger in self.ledgers.items():
            first = self._aggregating(name)[0]
            if first.name in manifest.windows.closed:
                self.ledgers[name] = ledger.forget(
                    droppable(first.window).bounds(manifest.windows.closed[first.name])[0]
                )
        for name, shares in self.shares.items():
            if name in manifest.windows.closed:
                window = self.windows[name][0]
                self.shares[name] = shares.forget(window.bounds(manifest.windows.closed[name])[0])


def come(manifest: Manifest, axis: Axis) -> Number | None:
    """The last place that a tuple of a stream had; None if there was none yet."""
    stream, counted = axis
    if counted:
        return manifest.progress.numbered[stream] - 1 if manifest.progress.numbered.get(stream) else None
    place = read(manifest.progress.highest.get(stream))
    return None if isinstance(place, float) else place


def common(ranges: Sequence[Sequence[Range]]) -> tuple[Range, ...]:
    """The places that are in some range of each.

    >>> common([[(0, 10), (20, 30)], [(5, 25)]])
    ((5, 10), (20, 25))
    """
    found = list(ranges[0])
    for others in ranges[1:]:
        found = [(max(a, c), min(b, d)) for a, b in found for c, d in others if max(a, c) < min(b, d)]
    return merged(found)
