"""`vitral targets`: the cores there are."""

import argparse

from vitral.cli.options import add_json_option
from vitral.cli.output import print_table, write_json
from vitral.targets import TARGETS, Target

__all__ = ["add_parsers"]


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("targets", help="list the cores that can be compiled for")
    add_json_option(parser)
    parser.set_defaults(command=_targets)


def _targets(args: argparse.Namespace) -> int:
    if args.json:
        write_json([_record(target) for target in TARGETS], args.json)
    if args.json != "-":
        rows = [
            [
                target.name,
                target.part or "-",
                f"{target.config.batch}x{target.config.block}x{target.config.block}",
                target.config.data_bits,
                target.config.burst_beats,
                target.meaning,
            ]
            for target in TARGETS
        ]
        print_table(("target", "part", "array", "data bits", "burst", "meaning"), rows)
    return 0


def _record(target: Target) -> dict[str, object]:
    return {
        "name": target.name,
        "part": target.part,
        "meaning": target.meaning,
        "config": target.config.to_dict(),
        "digest": target.config.digest,
    }
