"""`vitral verilog`: the core as one Verilog file."""

import argparse
import sys
from pathlib import Path

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
    from vitral.hw.verilog import emit

    text = emit(config)
    if args.output == "-":
        sys.stdout.write(text)
    else:
        Path(args.output).write_text(text)
    return 0
