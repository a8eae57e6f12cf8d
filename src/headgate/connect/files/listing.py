"""The files in a place, found by Spark and not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.connect.files.folders import Ways, ways
from headgate.connect.files.options import FOLLOWING, finding, without
from headgate.errors import SourceError
from headgate.spark.failures import plain_errors

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from headgate.connect.files.place import Place

#: No file name contains this.
_BETWEEN = "\0"


@dataclass(frozen=True)
class File:
    """A file as it was found."""

    path: str
    size: int
    changed: int
    """When it was last changed, in milliseconds."""


def found(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> list[File]:
    """The files in a place."""
    return listed(_all_below(spark, place, options), place)


def listed(leaf: JavaObject, place: Place) -> list[File]:
    """The files that a relation reads, without those in folders that do not count."""
    statuses = leaf.relation().location().allFiles()
    files = []
    for i in range(statuses.size()):
        status = statuses.apply(i)
        path = status.getPath().toString()
        if place.has(path):
            files.append(File(path, int(status.getLen()), int(status.getModificationTime())))
    return files


def ways_of(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> Ways:
    """The ways in which the folders of a place name columns; none if the place is not there yet."""
    if place.depth is None:
        return {}
    try:
        with plain_errors():
            relation = _all_below(spark, place, options)
    except SourceError:
        if place.exists:
            raise
        return {}
    # There may be many files: one call to the JVM brings all folders.
    folders = relation.relation().location().leafDirToChildrenFiles().keys().mkString(_BETWEEN)
    return ways(folders.split(_BETWEEN), place.depth) if folders else {}


def in_all_folders(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, so that files are found in all folders below a place."""
    return without(options, ["recursiveFileLookup"]) | {"recursiveFileLookup": True}


def _all_below(spark: SparkSession, place: Place, options: Mapping[str, Any]) -> JavaObject:
    """The relation of all files in a place and below it."""
    only = in_all_folders(finding(without(options, FOLLOWING)))
    rows = spark.read.format("binaryFile").options(**only).load(place.pattern)
    return rows._jdf.queryExecution().analyzed().collectLeaves().apply(0)
