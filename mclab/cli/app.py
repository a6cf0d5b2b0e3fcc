"""The program `mclab`: all commands, their exit codes, and what is printed for an error, an interrupt or a bug."""

import codecs
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer

from mclab.cli.ablate import ablate
from mclab.cli.check import check
from mclab.cli.compare import compare
from mclab.cli.doctor import doctor
from mclab.cli.keys import keys
from mclab.cli.list import list_
from mclab.cli.output import remark, result, traceback_without_passwords
from mclab.cli.plot import plot
from mclab.cli.report import report
from mclab.cli.reproduce import reproduce
from mclab.cli.sample import sample
from mclab.cli.show import show
from mclab.cli.sweep import sweep
from mclab.cli.table import table
from mclab.cli.train import train
from mclab.passwords import command_line
from mclab.report.characters import in_plain_signs

#: Further exit codes, besides those that a command sets itself: an error in the user's input, an interrupt, a SIGTERM.
USER, INTERRUPTED, TERMINATED = 2, 130, 143

app = typer.Typer(
    name="mclab",
    help=(
        "Ablations of Memory Caching models on synthetic recall tasks: mclab trains a grid and prints an honest table."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(ablate)
app.command()(reproduce)
app.command()(sweep)
app.command()(train)
app.command()(table)
app.command()(plot)
app.command()(report)
app.command("list")(list_)
app.command()(show)
app.command()(compare)
app.command()(sample)
app.command()(keys)
app.command()(check)
app.command()(doctor)

#: The exception that Typer raises for a command line that it cannot parse; it is defined in typer or in click,
#: depending on the version.
_UsageError: Any = typer.BadParameter.__mro__[1]


def _version(wanted: bool) -> None:
    if wanted:
        from mclab import __version__

        result(__version__)
        raise typer.Exit


@app.callback()
def common(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback also for errors in the input.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of every command, before or after its name."""


def main() -> NoReturn:
    """Run the program. For an error in the user's input it prints one line on standard error and exits with code 2."""
    words = sys.argv[1:]
    # This must be set before torch is loaded, here and in workers. Otherwise threads that wait by spinning take the
    # cores from the threads that they wait for, if there are more threads than idle cores (LOG.md: 40 times slower).
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    codecs.register_error("plain signs", in_plain_signs)
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(errors="plain signs")
    sys.excepthook = traceback_without_passwords
    with _terminable() as terminated:
        code = _run([word for word in words if word != "--debug"], debug="--debug" in words)
    if code == INTERRUPTED:
        remark(f"{'terminated' if terminated else 'interrupted'}; {_to_continue(words)}")
        code = TERMINATED if terminated else INTERRUPTED
    sys.exit(code)


def _to_continue(words: list[str]) -> str:
    """Return the command to continue with, in words.

    A database's password is left out, since the text may be logged.
    """
    shown = command_line(["mclab", *words])
    hint = "" if shown == shlex.join(["mclab", *words]) else ", the password in PGPASSWORD or ~/.pgpass"
    return f"to continue{hint}: {shown}"


@contextmanager
def _terminable() -> Iterator[list[int]]:
    """Within the block, let a SIGTERM (from Slurm, docker, timeout) stop a command as Ctrl-C does.

    Yields a list that is empty until a SIGTERM has arrived.
    """
    seen: list[int] = []

    def stop(number: int, frame: Any) -> None:
        if not seen:  # a second signal must not interrupt the clean-up
            seen.append(number)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(words: list[str], debug: bool) -> int:
    """Run a command and return its exit code. Bugs of mclab are raised, and with `debug` also a `ConfigError`."""
    try:
        return int(app(words, prog_name="mclab", standalone_mode=False) or 0)
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit:  # Typer raises it when the reader of the output has closed the pipe
        return 0
    except _UsageError as error:
        remark(*_usage(error).split("\n"))
    except ValueError as error:
        if debug or not _is_users(error):
            raise
        remark(*str(error).split("\n"))
    return USER


def _usage(error: Any) -> str:
    """Return one line that says what is wrong with the command line, or the help text if no command was given."""
    text, context = error.format_message(), error.ctx
    if context is None or (context.command.no_args_is_help and "Usage:" in text):
        return str(text)
    path = context.command_path
    return f"{path}: {' '.join(text.split()).rstrip('.')} (see {path} --help)"


def _is_users(error: ValueError) -> bool:
    from mclab.config.strict import ConfigError

    return isinstance(error, ConfigError)
