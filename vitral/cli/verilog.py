"""`vitral verilog`: the core as one Verilog file."""

import argparse
import sys
from pathlib import Path
from typing import TextIO

from vitral.config import CoreConfig
from vitral.targets import TARGETS, target_config

__all__ = ["add_parsers"]


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("verilog", help="write the core as one Verilog file")
    names = ", ".join(target.name for target in TARGETS)
    parser.add_argument("--target", metavar="NAME", default="sim", help=f"one of {names}")
    parser.add_argument("-o", "--output", metavar="FILE", default="-", help="- for stdout")
    parser.set_defaults(command=_verilog)


def _verilog(args: argparse.Namespace) -> int:
    config = target_config(args.target)
    if args.output == "-":
        _write(config, sys.stdout)
    else:
        with Path(args.output).open("w") as file:  # before the work, should it not be possible
            _write(config, file)
    return 0


def _write(config: CoreConfig, file: TextIO) -> None:
    from vitral.hw.verilog import emit

    file.write(emit(config))
