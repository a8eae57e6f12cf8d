"""The place of files: a folder, a file, or a pattern that names several."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.connect.files.folders import foldered, parents
from headgate.connect.files.options import BASE, is_on, value_of
from headgate.errors import SourceError
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATTERN = re.compile(r"([\\*?\[\]{}])")


@dataclass(frozen=True)
class Place:
    """Where files are."""

    pattern: str
    """The path for Spark, which reads brackets in a name as a pattern."""
    depth: int | None
    """How many folders deep the place is; None if the folders below it name no columns."""
    exists: bool = True
    """Whether there is a file or folder of this name. A pattern may name files even if there is none."""

    @classmethod
    def of(cls, spark: SparkSession, path: str, options: Mapping[str, Any]) -> Place:
        """The place that a path stands for."""
        path = os.path.expanduser(path)
        with plain_errors():
            exists, is_file, depth, full = _looked_up(spark, path)
            if (base := value_of(options, BASE)) is not None:
                _, _, depth, above = _looked_up(spark, str(base))
                if not f"{full}/".startswith(f"{above.rstrip('/')}/"):
                    raise SourceError(f"{BASE}={str(base)!r}: give a folder that {path} is, or is in")
        # The alternatives of a pattern may differ in depth.
        flat = is_on(options, "recursiveFileLookup") or (not exists and re.search(r"\{[^}]*/", path))
        pattern = literal(path) if exists else path
        if is_file and pattern == path:
            # Spark streams from a folder or a pattern, not from a file.
            folder, name = os.path.split(path)
            pattern = os.path.join(folder, f"[{name[0]}]{name[1:]}")
        return cls(pattern, None if flat else depth, exists)

    def has(self, path: str) -> bool:
        """Whether a file counts: it lies in the place itself, or below it in folders that name columns."""
        shallow = self.depth is None or len(parents(path)[1]) - 1 <= self.depth
        return shallow or self.base(path) is not None

    def base(self, path: str) -> str | None:
        """The folder above those that name columns for a file, if any do."""
        return foldered(path, self.depth)[0]


def _looked_up(spark: SparkSession, path: str) -> tuple[bool, bool, int, str]:
    """Whether a path exists, whether it is a file, how many folders deep it is, and its full name."""
    assert spark._jvm is not None
    place = spark._jvm.org.apache.hadoop.fs.Path(path)
    system = place.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    exists, full = system.exists(place), system.makeQualified(place)
    return exists, exists and system.getFileStatus(place).isFile(), full.depth(), full.toString()


def is_pattern(path: str) -> bool:
    """Whether a path may stand for several files or folders."""
    return _PATTERN.search(path) is not None


def literal(path: str) -> str:
    r"""The name of a file, escaped so that Spark reads no pattern in it.

    >>> print(literal("in[1].csv"))
    in\[1\].csv
    """
    return _PATTERN.sub(r"\\\1", path)
