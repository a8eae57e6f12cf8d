"""The command `headgate`: its arguments, and its exit codes."""

# Typer reads the annotations at run time, so they must not be strings in this file.

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Literal

import typer

from headgate.errors import Error
from headgate.plan.logical.strategy import Strategy

__all__ = ["app", "main"]

app = typer.Typer(
    help="Continuous window queries over data streams on Apache Spark.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_Streams = Annotated[
    list[str] | None,
    typer.Option("--stream", "-s", metavar="NAME=PATH", help="A stream and the Parquet, CSV or JSON it is read from."),
]
_Tables = Annotated[
    list[str] | None,
    typer.Option("--table", "-t", metavar="NAME=PATH", help="A table to join streams with, and where it is."),
]
_Forced = Annotated[Strategy | None, typer.Option("--strategy", help="How to compute windows; else the planner says.")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and gives its exit code: 0, 2 after an error (in one line), 130 after an interrupt.

    A flow that ran and then failed gives 1.

    >>> main(["--version"])
    headgate 0.1.0
    0
    """
    try:
        given = None if arguments is None else list(arguments)
        code = app(args=given, prog_name="headgate", standalone_mode=False)
        sys.stdout.flush()
    except Error as error:
        return failed(str(error))
    except BrokenPipeError:
        # The reader of our output has gone. What is still buffered must not raise again when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return failed(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except typer.TyperException as error:
        return failed(error.format_message())
    except (KeyboardInterrupt, typer.Abort):
        return 130
    return code if isinstance(code, int) else 0


def failed(message: str, code: int = 2) -> int:
    """Says in one line what went wrong, and gives the exit code."""
    print("error:", " ".join(message.split()), file=sys.stderr)
    return code


def _show_version(wanted: bool) -> None:
    if wanted:
        print("headgate", version("headgate"))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _headgate(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


# Commands import what they need when they are called, so help, errors and plans come at once, without Spark.


@app.command("query")
def _query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The query, @FILE to read it from a file, or - for stdin.")],
    stream: _Streams = None,
    table: _Tables = None,
    strategy: _Forced = None,
    limit: Annotated[int, typer.Option(min=1, help="The most rows that a table shows.")] = 50,
    format: Annotated[  # noqa: A002 - the name of the option
        Literal["table", "csv", "json"],
        typer.Option(help="How to print the answer; csv and json print all rows."),
    ] = "table",
    output: Annotated[
        str | None, typer.Option(metavar="PATH", help="Write to .parquet, .csv or .json instead of printing.")
    ] = None,
) -> None:
    """Answer a query over files, once."""
    from headgate.cli.query import answer_query

    answer_query(sql, stream or [], table or [], strategy, limit, format, output)


@app.command("explain")
def _explain(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A query or a script (CREATE STREAM ...); - for stdin.")],
    stream: _Streams = None,
    table: _Tables = None,
    strategy: _Forced = None,
) -> None:
    """Show the plan of a query, or of every query of a script."""
    from headgate.cli.explain import explain_file

    explain_file(file, stream or [], table or [], strategy)


@app.command("run")
def _run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A script (CREATE STREAM ...); - for stdin.")],
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where the flow keeps its state; else beside the script.")
    ] = None,
    trigger: Annotated[
        str | None, typer.Option(metavar="TIME", help="How often a batch runs, such as '5 seconds'; else at once.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Run over what is there now, then exit.")] = False,
    target: Annotated[
        str | None, typer.Option(metavar="TIME", help="Shed load where a batch would take longer than this.")
    ] = None,
) -> int:
    """Run the queries of a script until Ctrl-C; started again, they go on from there."""
    from headgate.cli.run import run_file

    return run_file(file, checkpoint, trigger, once, target)


@app.command("demo")
def _demo(
    packets: Annotated[int, typer.Option(min=1, help="How many packets to make up.")] = 1_000_000,
) -> None:
    """Answer one sliding-window query over made-up network packets."""
    from headgate.cli.demo import run_demo

    run_demo(packets)
