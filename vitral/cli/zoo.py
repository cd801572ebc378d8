"""`vitral zoo`: networks by name, written, or run and compared byte by byte."""

import argparse
import sys
from pathlib import Path

from vitral.cli.options import add_json_option
from vitral.cli.output import print_table, write_json
from vitral.errors import VitralError
from vitral.runtime.device import device_names
from vitral.zoo.subjects import MissingPackageError

__all__ = ["add_parsers"]

MISMATCH, BAD_INPUT = 1, 2


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("zoo", help="standard networks: list, build, run and compare")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="name them")
    listing.set_defaults(command=_list)
    build = actions.add_parser("build", help="write one as an ONNX model")
    build.add_argument("name", metavar="NAME")
    build.add_argument("-o", "--output", metavar="FILE.onnx", help="default: NAME.onnx")
    build.add_argument("--seed", type=int, default=0, help="of weights and calibration")
    build.set_defaults(command=_build)
    _add_run(actions)


def _add_run(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    run = actions.add_parser("run", help="compile and run, and compare every tensor")
    run.add_argument("names", nargs="*", metavar="NAME", help="see: vitral zoo list")
    run.add_argument("--all", action="store_true", help="every network whose package is installed")
    run.add_argument("--device", choices=device_names(), default="fsim")
    run.add_argument("--seed", type=int, default=0, help="of weights, calibration and input")
    run.add_argument(
        "--judge",
        default="numpy",
        metavar="MODULE:FUNCTION",
        help="what gives the right tensors of a model for inputs by name; default: the compiler's"
        " operators in numpy",
    )
    add_json_option(run)
    run.set_defaults(command=_run)


def _list(args: argparse.Namespace) -> int:
    from vitral.zoo.subjects import subjects

    print_table(("network", "from"), [(s.name, s.source) for s in subjects()])
    return 0


def _build(args: argparse.Namespace) -> int:
    from vitral.zoo.subjects import subject

    data = subject(args.name).build(args.seed).SerializeToString()
    Path(args.output or f"{args.name}.onnx").write_bytes(data)
    return 0


def _run(args: argparse.Namespace) -> int:
    from vitral.zoo.run import NetworkRun, load_judge, run_network
    from vitral.zoo.subjects import subject, subjects

    if bool(args.names) == args.all:
        raise VitralError("zoo run needs names or --all; see vitral zoo list")
    load_judge(args.judge)
    chosen = subjects() if args.all else tuple(map(subject, args.names))
    runs: list[NetworkRun] = []
    failed: list[dict[str, str]] = []
    for network in chosen:
        print(f"vitral: {network.name}", file=sys.stderr)
        try:
            runs.append(run_network(network, args.device, judge=args.judge, seed=args.seed))
        except VitralError as error:
            print(f"vitral: {network.name}: {' '.join(str(error).split())}", file=sys.stderr)
            if not (args.all and isinstance(error, MissingPackageError)):
                failed.append({"name": network.name, "error": str(error)})
    if args.json:
        write_json([*(run.to_dict() for run in runs), *failed], args.json)
    if args.json != "-":
        _print(runs)
    if failed:
        return BAD_INPUT
    return 0 if all(run.passed for run in runs) else MISMATCH


def _print(runs: list) -> None:
    header = ("network", "MACs", "on accelerator", "tensors", "bytes", "differ", "collapsed")
    rows = [
        (
            *(run.name, run.macs, run.accelerator_share, run.tensors, run.bytes),
            *(run.differing_bytes, ", ".join(run.collapsed) or "none"),
        )
        for run in runs
    ]
    print_table(header, rows)
    for run in runs:
        print(
            f"{run.name}: compiled in {run.compile_s:.1f} s of CPU, numpy workload"
            f" {run.numpy_workload_s:.1f} s, run in {run.run_s:.2f} s"
        )
