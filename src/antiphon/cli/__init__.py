"""The `antiphon` command. What it can do is joined through the entry-point group `antiphon.commands`.

An entry point is a name and a plain function with typer's annotations, one small module a command. It is imported when
its command runs, or is shown by `antiphon --help`; what it needs beyond typer and rich it imports inside the function.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from antiphon import __version__
from antiphon.errors import AntiphonError, BackendNotFound, BadInput, ProfileNotFound
from antiphon.near import listing

GROUP = "antiphon.commands"
OWN = {"convert": "antiphon.cli.convert:convert", "serve": "antiphon.cli.serve:serve"}
# command -> where a word that stands behind its name belongs
BEHIND = {"serve": ": a backend is given as --backend {}, a file of settings as --config FILE"}
HELP = "`antiphon --help` says what each does"
BAD_USE = 2
READER_GONE = 141  # 128 + SIGPIPE, which is what a shell reports of a program whose reader went away


def main() -> None:
    """Run the command line. Exits 0 if all went well, 1 if what was looked at is at fault, 2 on bad use."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal or a pipe that is not UTF-8 shows escapes
    app(prog_name="antiphon")


def entries() -> dict[str, EntryPoint]:
    """Return all commands by their names. Our own cannot be replaced."""
    joined = {point.name: point for point in entry_points(group=GROUP)}
    return joined | {name: EntryPoint(name, value, GROUP) for name, value in OWN.items()}


class Commands(TyperGroup):
    """The commands, each loaded when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(entries())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        point = entries().get(cmd_name)
        return None if point is None else load_command(point)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the command that the first word names. Raises BadInput, which says which one is meant, and for a word
        after it that the command takes behind an option alone."""
        known = sorted(entries())
        if args[0] not in known:
            raise BadInput(f"there is no command {args[0]!r}{listing(args[0], known, 'there are')}; {HELP}")
        found: tuple[Any, Any, list[str]] = super().resolve_command(ctx, args)
        name, command, rest = found
        if rest and rest[0][:1] not in ("", "-") and all(one.param_type_name == "option" for one in command.params):
            from antiphon.stream.faults import redact

            word, hint = redact(rest[0]), BEHIND.get(name, "")
            raise BadInput(f"{name} takes options alone, and {word!r} is none{hint.format(word)}")
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run the command; what its user got wrong is one message, and a reader that went away none."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes once more when it exits, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(READER_GONE) from None
        except AntiphonError as problem:
            typer.echo(f"antiphon: {_told(problem)}", err=True)
            raise typer.Exit(BAD_USE) from None
        return result


def _told(problem: AntiphonError) -> str:
    """Return what a problem says to who gives options, and calls nothing from Python."""
    match problem:
        case ProfileNotFound(found=found):
            return f"--profile: {found}"
        case BackendNotFound(found=found):
            return f"--backend: {found}; or a URL, such as http://127.0.0.1:8000/v1"
        case _:
            return str(problem)


def load_command(point: EntryPoint) -> Any:
    """Return the command of an entry point; of one that cannot be loaded, a command that says why."""
    try:
        return _command(point.name, point.load())
    except Exception as problem:  # noqa: BLE001 -- it is others' code, and must not take the other commands with it
        return _broken(point, problem)


def _command(name: str, function: Callable[..., Any], **settings: Any) -> Any:
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    context = {"help_option_names": ["-h", "--help"], **settings}
    single.command(name, help=_flowing(inspect.getdoc(function)), context_settings=context)(function)
    return typer.main.get_command(single)


def _flowing(said: str | None) -> str | None:
    """Return a docstring with each paragraph in one line: typer keeps the ends of the others, whatever the width."""
    paragraphs = said.split("\n\n") if said else []
    return "\n\n".join(one if "\b" in one else one.replace("\n", " ") for one in paragraphs) or None


def _broken(point: EntryPoint, problem: Exception) -> Any:
    reason = f"{type(problem).__name__}: {problem}"

    def explain() -> None:
        typer.echo(
            f"antiphon: the command {point.name!r} ({point.value}) cannot be loaded: {reason}\n"
            "Install what it needs, or remove the package that it belongs to; the other commands work",
            err=True,
        )
        raise typer.Exit(BAD_USE)

    explain.__doc__ = f"(cannot be loaded: {reason})".replace("[", r"\[")
    return _command(point.name, explain, ignore_unknown_options=True, allow_extra_args=True)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"antiphon {__version__}")
        raise typer.Exit


@app.callback()
def antiphon(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Any Chat Completions backend, sung as the OpenAI Responses event stream."""
