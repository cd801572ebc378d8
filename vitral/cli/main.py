"""Parses the command line and turns errors into exit statuses."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import vitral
from vitral.cli import (
    bench,
    bitstream,
    build,
    listing,
    program,
    quantize,
    report,
    run,
    serve,
    show,
    targets,
    verilog,
    zoo,
)
from vitral.errors import VitralError

__all__ = ["main"]

BAD_INPUT = 2
INTERRUPTED = 130
_COMMANDS = (
    *(build, quantize, show, run, listing, program, bench, zoo, report, serve, verilog, targets),
    bitstream,
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message}; see {self.prog} --help\n")


def make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="vitral", description="Compile and run quantized networks on the Vitral accelerator."
    )
    parser.add_argument("--version", action="version", version=f"vitral {vitral.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        module.add_parsers(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the arguments are the process's when `argv` is None."""
    _write_any_text()
    try:
        args = make_parser().parse_args(argv)
        return args.command(args)
    except SystemExit as end:  # from argparse: help, version, a wrong argument
        return end.code if isinstance(end.code, int) else BAD_INPUT
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (VitralError, OSError) as error:
        print(f"vitral: {_one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except ModuleNotFoundError as error:
        from vitral.runtime.device import missing_package

        print(f"vitral: this needs {missing_package(error)}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("vitral: interrupted", file=sys.stderr)
        return INTERRUPTED


def _write_any_text() -> None:
    """Names that the terminal's encoding lacks come out escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
