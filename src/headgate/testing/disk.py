"""A disk in memory, on which each write may be where the process ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from headgate.protocol.files import FileInfo
from headgate.testing.crashes import KilledError

#: Where in a write the process ends: before it, in the middle of it, or after it.
When = Literal["before", "in", "after"]
WHENS: tuple[When, ...] = ("before", "in", "after")


@dataclass
class Disk:
    """Files by their paths, and the writes at which the process is to end."""

    rng: Random
    contents: dict[str, str] = field(default_factory=dict)
    kills: dict[int, When] = field(default_factory=dict)
    """By the number of a write, when the process ends."""
    writes: int = 0
    reached: Counter[tuple[str, When]] = field(default_factory=Counter)
    """What the process was doing when it ended."""

    def write(self, what: str, whole: Callable[[], None], half: Callable[[], None]) -> None:
        """Does a write as a whole, or does not get to the end of it."""
        when = self.kills.get(self.writes)
        self.writes += 1
        if when is not None:
            self.reached[what, when] += 1
        if when == "before":
            raise KilledError
        (half if when == "in" else whole)()
        if when is not None:
            raise KilledError

    def put(self, what: str, path: str, text: str) -> None:
        """Makes or replaces a file; the end of the process may leave it cut short."""

        def cut() -> None:
            self.contents[path] = text[: self.rng.randrange(len(text))]

        self.write(what, lambda: self.contents.update({path: text}), cut)

    def put_whole(self, what: str, path: str, text: str) -> None:
        """Makes or replaces a file at once: it is there as a whole, or not at all."""
        self.write(what, lambda: self.contents.update({path: text}), lambda: None)

    def remove(self, what: str, path: str) -> None:
        """Deletes a file, or a folder file by file."""
        own = [name for name in self.contents if name == path or name.startswith(f"{path}/")]

        def some() -> None:
            for name in own[: self.rng.randint(0, len(own))]:
                del self.contents[name]

        def every() -> None:
            for name in own:
                del self.contents[name]

        if own:
            self.write(what, every, some)


@dataclass(frozen=True)
class MemoryFolder:
    """A folder on such a disk."""

    disk: Disk
    path: str

    def __truediv__(self, name: str) -> MemoryFolder:
        return MemoryFolder(self.disk, f"{self.path}/{name}")

    def read(self, name: str, most: int | None = None) -> str | None:
        """The text of a file."""
        text = self.disk.contents.get(f"{self.path}/{name}")
        return text if text is None or most is None else text[:most]

    def write(self, name: str, text: str) -> None:
        """Makes or replaces a file."""
        self.disk.put(f"write {self._kind}", f"{self.path}/{name}", text)

    def write_new(self, name: str, text: str, by: str) -> bool:
        """Makes a file at once, if there is none of this name."""
        del by
        if f"{self.path}/{name}" in self.disk.contents:
            return False
        self.disk.put_whole(f"make {self._kind}", f"{self.path}/{name}", text)
        return True

    def files(self) -> list[FileInfo]:
        """The files, by name."""
        found = self._below()
        return [FileInfo(name, len(found[name])) for name in sorted(found) if "/" not in name]

    def folders(self) -> list[str]:
        """The names of the folders in this one."""
        return sorted({name.partition("/")[0] for name in self._below() if "/" in name})

    def delete(self, name: str | None = None) -> None:
        """Deletes a file or a folder, or this folder itself."""
        self.disk.remove(f"delete {self._kind}", self.path if name is None else f"{self.path}/{name}")

    @property
    def _kind(self) -> str:
        """The part of the checkpoint that it belongs to: its first folder below the root."""
        parts = self.path.split("/")
        return parts[1] if len(parts) > 1 else parts[0]

    def _below(self) -> dict[str, str]:
        prefix = f"{self.path}/"
        return {path[len(prefix) :]: text for path, text in self.disk.contents.items() if path.startswith(prefix)}
