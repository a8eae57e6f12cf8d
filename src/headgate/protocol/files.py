"""Files by their names in a folder, as the store needs them: on any file system, or in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class FileInfo:
    """The name of a file in its folder, and its size in bytes."""

    name: str
    size: int


class Files(Protocol):
    """A folder."""

    @property
    def path(self) -> str:
        """Where it is."""

    def __truediv__(self, name: str) -> Files:
        """A folder in this one."""

    def read(self, name: str, most: int | None = None) -> str | None:
        """The text of a file, no more than so many bytes of it; None if there is none, or none that can be read."""

    def write(self, name: str, text: str) -> None:
        """Makes or replaces a file. A crash may leave it cut short."""

    def write_new(self, name: str, text: str, by: str) -> bool:
        """Makes a file, whole from the first; False if there is one of this name already."""

    def files(self) -> list[FileInfo]:
        """The files, by name, without hidden ones."""

    def folders(self) -> list[str]:
        """The names of the folders in this one."""

    def delete(self, name: str | None = None) -> None:
        """Deletes a file or a folder; without a name, this folder itself."""
