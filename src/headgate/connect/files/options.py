"""The options of Spark's own formats. With them a wrong name is found at once, and without Spark."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_TEXTS = _names(
    "charset columnNameOfCorruptRecord compression dateFormat enableDateTimeParsingFallback encoding lineSep locale"
    " mode multiLine samplingRatio singleVariantColumn timeFormat timeZone timestampFormat timestampNTZFormat"
)
#: The formats of files that are read directly.
READABLE = ("csv", "json", "parquet")
#: The options of each format, for reading and writing.
FORMAT_OPTIONS: dict[str, frozenset[str]] = {
    "csv": _TEXTS
    | _names(
        "charToEscapeQuoteEscaping codec columnPruning comment delimiter emptyValue enforceSchema escape escapeQuotes"
        " extension header ignoreLeadingWhiteSpace ignoreTrailingWhiteSpace inferSchema inputBufferSize"
        " maxCharsPerColumn maxColumns nanValue negativeInf nullValue positiveInf preferDate quote quoteAll sep"
        " unescapedQuoteHandling"
    ),
    "json": _TEXTS
    | _names(
        "allowBackslashEscapingAnyCharacter allowComments allowNonNumericNumbers allowNumericLeadingZeros"
        " allowSingleQuotes allowUnquotedControlChars allowUnquotedFieldNames dropFieldIfAllNull explodeEmbeddedArray"
        " ignoreNullFields inferTimestamp prefersDecimal pretty primitivesAsString sortKeys useUnsafeRow"
        " writeNonAsciiCharacterAsCodePoint"
    ),
    "parquet": _names("compression datetimeRebaseMode int96RebaseMode mergeSchema parquet.compression"),
    "orc": _names("compression mergeSchema orc.compress"),
    "text": _names("compression encoding lineSep wholetext"),
}
#: Options that decide which files count.
FINDING = _names(
    "archivePathFilter ignoredPathSegmentRegex modifiedAfter modifiedBefore pathGlobFilter recursiveFileLookup"
)
_FORGIVING = _names("ignoreCorruptFiles ignoreMissingFiles")
#: Options for how Spark follows the files of a stream.
FOLLOWING = _names(
    "cleanSource discardCachedInputRatio fileNameOnly latestFirst maxBytesPerTrigger maxCachedFiles maxFileAge"
    " maxFilesPerTrigger sourceArchiveDir"
)
BASE = "basePath"
#: Names the column for records that do not fit, which a schema may have.
RECORDS = "columnNameOfCorruptRecord"
_WRITING = _names("maxRecordsPerFile partitionBy path")
#: What other tools call an option.
_ELSEWHERE = {
    "delim": "sep",
    "delimeter": "sep",
    "escapechar": "escape",
    "field_delimiter": "sep",
    "null": "nullValue",
    "nullstr": "nullValue",
    "partition_by": "partitionBy",
    "quotechar": "quote",
    "recursive": "recursiveFileLookup",
    "separator": "sep",
}
_FLAGS = _names("fileNameOnly ignoreCorruptFiles ignoreMissingFiles latestFirst mergeSchema recursiveFileLookup")
_COUNTS = _names("maxCachedFiles maxFilesPerTrigger")
_MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")


def wrong_reading(format_: str, options: Mapping[str, Any], follows: bool, others: Iterable[str] = ()) -> str | None:
    """What is wrong with the options for reading one of Spark's own formats, in words; None if nothing is.

    `others` are more names that may have been meant.

    >>> wrong_reading("csv", {"seperator": ";"}, follows=True)
    'unknown option seperator: did you mean sep?'
    >>> wrong_reading("csv", {"mode": "lenient"}, follows=True)
    "mode='lenient': give PERMISSIVE, DROPMALFORMED or FAILFAST"
    """
    known = FORMAT_OPTIONS[format_] | FINDING | _FORGIVING | {BASE} | (FOLLOWING if follows else frozenset())
    return _unknown(options, known, others) or _wrong_mode(format_, options) or _wrong_value(options)


def wrong_writing(format_: str, options: Mapping[str, Any], others: Iterable[str] = ()) -> str | None:
    """What is wrong with the options for writing a format, in words; formats that are not Spark's own are not checked.

    >>> wrong_writing("csv", {"path": "out", "partitionby": "k", "headr": True})
    'unknown option headr: did you mean header?'
    """
    partitions = value_of(options, "partitionBy", "")
    named = isinstance(partitions, str | list | tuple) and all(isinstance(n, str) and n.strip() for n in partitions)
    if not named or value_of(options, "partitionBy") == "":
        return f"partitionBy={partitions!r}: give the name of a column, or a list of them"
    if format_.lower() not in FORMAT_OPTIONS:
        return None
    if not value_of(options, "path"):
        return "path is missing: say where the answers go, path='...'"
    if str(value_of(options, "mode", "")).upper() not in ("", *_MODES):
        return "mode: answers are appended to what is there; leave it out"
    # `run.results` reads the answers with the same options.
    return _unknown(options, FORMAT_OPTIONS[format_.lower()] | FINDING | _FORGIVING | _WRITING, others)


def value_of(options: Mapping[str, Any], name: str, usual: Any = None) -> Any:
    """The value of an option; letters may be upper or lower case.

    >>> value_of({"Header": True}, "header")
    True
    """
    return next((value for own, value in options.items() if own.lower() == name.lower()), usual)


def without(options: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """All options but these.

    >>> without({"Sep": ";", "header": True}, ["sep"])
    {'header': True}
    """
    gone = {name.lower() for name in names}
    return {name: value for name, value in options.items() if name.lower() not in gone}


def is_on(options: Mapping[str, Any], name: str) -> bool:
    """Whether an option is set to true."""
    return str(value_of(options, name, False)).lower() == "true"


def finding(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that decide which files count."""
    known = {name.lower() for name in FINDING | _FORGIVING | FOLLOWING}
    return {name: value for name, value in options.items() if name.lower() in known}


def _unknown(options: Mapping[str, Any], known: frozenset[str], others: Iterable[str]) -> str | None:
    lower = {name.lower() for name in known}
    for name in options:
        # Names with a dot are settings of Hadoop, such as parquet.block.size.
        if name.lower() not in lower and "." not in name:
            return f"unknown option {name}: {_meant(name, [*known, *others])}"
    return None


def _meant(name: str, known: list[str]) -> str:
    names = {k.lower(): k for k in sorted(known)}
    names |= {other: own for other, own in _ELSEWHERE.items() if own in known}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return f"did you mean {names[near[0]]}?" if near else f"there are {', '.join(sorted(known))}"


def _wrong_value(options: Mapping[str, Any]) -> str | None:
    """What is wrong with a value that Spark does not check, or checks only when it reads the first batch."""
    flags, counts = ({name.lower() for name in names} for names in (_FLAGS, _COUNTS))
    for name, value in options.items():
        text = str(value).strip().lower()
        if name.lower() in flags and value is not None and text not in ("true", "false"):
            return f"{name}={value!r}: give True or False"
        if name.lower() in counts and value is not None and not (text.isdecimal() and int(text) > 0):
            return f"{name}={value!r}: give a whole number, one or more"
    return None


def _wrong_mode(format_: str, options: Mapping[str, Any]) -> str | None:
    mode = value_of(options, "mode")
    if format_ not in ("csv", "json") or mode is None or str(mode).upper() in _MODES:
        return None
    return f"mode={mode!r}: give {', '.join(_MODES[:-1])} or {_MODES[-1]}"
