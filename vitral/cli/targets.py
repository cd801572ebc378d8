"""`vitral targets`: the boards and simulators there are, and their cores."""

import argparse

from vitral.cli.options import add_json_option
from vitral.cli.output import print_table, write_json
from vitral.targets import TARGETS, Target

__all__ = ["add_parsers"]

_HEADER = ("target", "part", "array", "port", "burst", "MHz", "peak GOPS", "memory MB/s", "meaning")


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("targets", help="list the boards and their cores")
    add_json_option(parser)
    parser.set_defaults(command=_targets)


def _targets(args: argparse.Namespace) -> int:
    if args.json:
        write_json([target.to_dict() for target in TARGETS], args.json)
    if args.json != "-":
        print_table(_HEADER, [_row(target) for target in TARGETS])
    return 0


def _row(target: Target) -> list[object]:
    config, port = target.config, target.port
    gops = target.peak_gops
    return [
        target.name,
        target.part or "-",
        f"{config.batch}x{config.block}x{config.block}",
        f"{port.name} {port.protocol} {port.data_bits}",
        port.burst_beats,
        target.clock_mhz,
        None if gops is None else f"{gops:.1f}",
        target.memory_mb_per_s,
        target.meaning,
    ]
