"""`vitral bench`: cycles of standard layers, checked against their exact results."""

import argparse

from vitral.cli.options import (
    add_json_option,
    add_memory_options,
    device,
    memory_model,
    positive,
)
from vitral.cli.output import print_table, write_json

__all__ = ["add_parsers"]

MISMATCH = 1
SIMULATORS = "sim"
"""Name of the benchmark that measures the simulators themselves."""


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("bench", help="measure a standard layer or network")
    parser.add_argument(
        "name",
        metavar="NAME",
        help="c1 ... c11, c2-c11: each of them, or a network of vitral.zoo, such as"
        " resnet18; sim: speed of the simulators",
    )
    parser.add_argument("--device", type=device, metavar="NAME", default="tsim")
    parser.add_argument("--target", metavar="NAME", default="sim", help="core to measure")
    parser.add_argument(
        "--repeat", type=positive, default=1, metavar="N", help="runs of each layer"
    )
    parser.add_argument(
        "--requant-lanes", type=positive, metavar="N", help="lanes of the core's requantiser"
    )
    add_memory_options(parser)
    add_json_option(parser)
    parser.set_defaults(command=_bench)


def _bench(args: argparse.Namespace) -> int:
    from vitral.bench import run_bench

    if args.name == SIMULATORS:
        return _bench_simulators(args)
    result = run_bench(
        args.name,
        args.device,
        target=args.target,
        data_bits=args.data_width,
        requant_lanes=args.requant_lanes,
        memory_model=memory_model(args),
        max_cycles=args.max_cycles,
        repeat=args.repeat,
    )
    record = result.to_dict()
    if args.json:
        write_json(record, args.json)
    if args.json != "-":
        _print(record)
    return 0 if result.match else MISMATCH


def _bench_simulators(args: argparse.Namespace) -> int:
    from vitral.bench.sim import bench_sim

    speed = bench_sim()
    if args.json:
        write_json(speed.to_dict(), args.json)
    if args.json != "-":
        print(f"{speed.layer}: {speed.macs:,} MACs in {speed.cycles:,} cycles")
        print(
            f"tsim  {speed.tsim_cycles_per_s:,.0f} cycles/s,"
            f" at best {speed.tsim_best_cycles_per_s:,.0f}"
        )
        print(
            f"fsim  {speed.fsim_macs_per_s / 1e9:.1f} G MAC/s,"
            f" at best {speed.fsim_best_macs_per_s / 1e9:.1f},"
            f" starts in {speed.fsim_start_s:.2f} s"
        )
        print(f"numpy workload {speed.numpy_workload_s:.2f} s")
    return 0 if speed.match else MISMATCH


def _print(record: dict) -> None:
    names = ("name", "macs", "cycles", "predicted_cycles", "roofline_cycles", "utilisation")
    rows = [
        [*(layer[name] for name in names), "yes" if layer["match"] else "NO"]
        for layer in record["layers"]
    ]
    header = ("layer", "MACs", "cycles", "predicted", "roofline", "utilisation", "exact")
    print_table(header, rows)
    for variant in record.get("variants", ()):
        cycles = variant["cycles"] or variant["predicted_cycles"]
        print(f"host layout {variant['layout']}: {cycles:,} cycles", end=", ")
        print(f"{variant['host_bytes']:,} bytes in {1000 * variant['host_s']:.1f} ms", end=", ")
        print(f"{variant['host_bytes_per_output_pixel']:.0f} per output pixel")
    if "compile" in record:
        cost = record["compile"]
        print(f"compiled in {cost['cpu_s']:.1f} s of CPU", end=", ")
        print(f"numpy workload {cost['numpy_workload_s']:.1f} s; {record['programs']} program(s)")
    for step in record["host"]:
        print(f"cpu  {step['name']}: {step['op']}, {1000 * step['seconds']:.1f} ms")
    print(f"one run takes {record['seconds']:.3f} s here", end="; ")
    if record["weighted_cycles"] is not None:
        print(f"by occurrence {record['weighted_cycles']:,} cycles", end=", ")
    if record["total_cycles"] is None:
        print(f"no cycles on {record['device']}")
    else:
        print(f"total {record['total_cycles']:,} cycles", end=", ")
        print(f"simulated at {record['cycles_per_s']:,.0f} cycles/s")
