"""Folders that name columns, as in region=eu/day=1: which columns they name, and whether they all agree."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote

from headgate.connect.files.columns import BY_FOLDERS
from headgate.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

#: The ways in which folders name columns: a folder of each way, and its columns in lower case.
Ways = Mapping[str, tuple[str, ...]]
#: An error shows at most this many of the folders that disagree.
_MOST_SHOWN = 3
_SCHEME = re.compile(r"[^/]*:(//[^/]*)?")


def parents(path: str) -> tuple[str, list[str]]:
    """The scheme of a path, and the folders that it lies in, from the root.

    >>> parents("file:/in/day=1/a.csv")
    ('file:', ['', 'in', 'day=1'])
    """
    found = _SCHEME.match(path)
    scheme = found[0] if found else ""
    return scheme, path[len(scheme) :].split("/")[:-1]


def foldered(path: str, depth: int | None) -> tuple[str | None, tuple[str, ...]]:
    """The base of the folders that name columns for a file, and these columns.

    The base is the folder above them. Folders below them that name no column make no difference.

    >>> foldered("file:/in/year=2026/day=1/late/a.csv", 1)
    ('file:/in', ('year', 'day'))
    """
    scheme, folders = parents(path)
    top = len(folders) if depth is None else min(depth + 1, len(folders))
    last = len(folders)
    while last > top and not _names_column(folders[last - 1]):
        last -= 1
    first = last
    while first > top and _names_column(folders[first - 1]):
        first -= 1
    names = tuple(folder.partition("=")[0] for folder in folders[first:last])
    return (scheme + "/".join(folders[:first]) if names else None), names


def _names_column(folder: str) -> bool:
    return folder.find("=") > 0


def column_names(folders: Iterable[str]) -> tuple[str, ...]:
    """The columns that folders name, in lower case and without escapes."""
    return tuple(unquote(folder).lower() for folder in folders)


def ways(folders: Iterable[str], depth: int | None) -> Ways:
    """The ways in which folders name columns, with one folder for each.

    Spark takes folders to be alike if they name the same columns in the same order, below the same base.
    """
    found: dict[tuple[str | None, tuple[str, ...]], str] = {}
    for folder in sorted(folders):
        base, names = foldered(f"{folder}/", depth)
        if names:
            found.setdefault((base, column_names(names)), folder)
    return {folder: names for (_, names), folder in found.items()}


def named(ways: Ways) -> tuple[str, ...]:
    """The columns that folders name in any way.

    >>> named({"in/k=2/m=3": ("k", "m"), "in/j=1": ("j",)})
    ('k', 'm', 'j')
    """
    return tuple(dict.fromkeys(name for own in ways.values() for name in own))


def agreed(ways: Ways, given: Collection[str]) -> tuple[str, ...]:
    """The columns that folders name.

    Raises a SourceError if folders disagree, unless all these columns are `given` by a schema.
    """
    names = named(ways)
    if len(ways) > 1 and not {name.lower() for name in given}.issuperset(names):
        shown = ", ".join(f"{folder} ({', '.join(own)})" for folder, own in list(ways.items())[:_MOST_SHOWN])
        raise SourceError(
            f"its folders disagree on the columns that they name: {shown}; name {', '.join(names)} in schema=, or have"
            " no columns of folders with recursiveFileLookup=True"
        )
    return names


def still_agreed(schema: StructType, paths: Iterable[str], depth: int | None, given: Collection[str]) -> None:
    """Raises a SourceError if new files lie in folders that disagree with the folders before.

    A flow that starts again would refuse such files. So a flow that runs refuses them too, before it has taken them.
    If no folder named a column before, there is nothing to disagree with.
    """
    places = {f.metadata[BY_FOLDERS]: f.name.lower() for f in schema if BY_FOLDERS in f.metadata}
    before = tuple(name for _, name in sorted(places.items()))
    found = {names: path for path in paths if (names := column_names(foldered(path, depth)[1]))}
    if before and not found.keys() <= {before}:
        late = {path.rpartition("/")[0]: names for names, path in found.items() if names != before}
        agreed({"those before": before, **late}, given)
