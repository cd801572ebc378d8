"""Arguments that several commands share."""

import argparse
from collections.abc import Callable
from typing import Any

from vitral.program import MemoryModel
from vitral.runtime.device import REMOTE, device_names
from vitral.targets import TARGETS

__all__ = [
    "add_compile_options",
    "add_device_options",
    "add_json_option",
    "add_memory_options",
    "add_placement_rules",
    "compile_options",
    "device",
    "memory_model",
    "positive",
    "shape",
]


def positive(text: str) -> int:
    """A whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return value


def natural(text: str) -> int:
    """A whole number of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, got {text}")
    return value


def device(text: str) -> str:
    """A device by name, or ``tcp://host:port``."""
    if text not in device_names() and not text.startswith(REMOTE):
        names = ", ".join(device_names())
        raise argparse.ArgumentTypeError(f"no device {text!r}; known: {names}, {REMOTE}host:port")
    return text


def shape(text: str) -> tuple[str, tuple[int, ...] | int]:
    """``input=1,3,224,224``, a whole shape, or ``N=1``, the size of a symbol."""
    name, equals, sizes = text.rpartition("=")
    try:
        values = tuple(int(size) for size in sizes.split(","))
    except ValueError:
        values = ()
    if not equals or not name or not values:
        raise argparse.ArgumentTypeError(f"must be like input=1,3,224,224 or N=1, got {text!r}")
    return (name, values) if len(values) > 1 else (name, int(sizes))


def device_rule(text: str) -> tuple[str, str]:
    """``name=device``."""
    name, equals, chosen = text.rpartition("=")
    if not name or not equals or not chosen:
        raise argparse.ArgumentTypeError(f"must be like nn.relu=cpu, got {text!r}")
    return name, chosen


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", metavar="FILE", help="write the result as JSON; - for stdout")


_OPTION_KINDS: dict[str, tuple[Callable[[str], object], str]] = {
    **dict.fromkeys(
        ("watchdog", "axi_attributes", "baud"), (lambda text: int(text, 0), "a number")
    ),
    "connect_seconds": (float, "a number"),
    **dict.fromkeys(("download", "check_ports"), (lambda text: _FLAGS[text], "true or false")),
}
"""Options of devices that are no text."""
_FLAGS = {"true": True, "false": False}
_OWN_FLAGS = {
    "memory_model": "--latency, --outstanding and --seed",
    "max_cycles": "--max-cycles",
    "trace": "--trace",
    "timeline": "--timeline",
    "order_seed": "--seed",
    "secret": "a file: --option secret_file=FILE",
}
"""Options of devices that the command has another form for."""


def device_option(text: str) -> tuple[str, object]:
    """``name=value``, the value of the option's kind."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"must be like bitstream=core.bit, got {text!r}")
    if name in _OWN_FLAGS:
        raise argparse.ArgumentTypeError(f"{name} is given by {_OWN_FLAGS[name]}")
    convert, kind = _OPTION_KINDS.get(name, (str, "text"))
    try:
        return name, convert(value)
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{name} must be {kind}, got {value!r}") from None


def add_device_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--option",
        type=device_option,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of the device, such as bitstream=core.bit",
    )


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("compiling")
    group.add_argument(
        "--target",
        metavar="NAME",
        help=f"core to compile for: {', '.join(target.name for target in TARGETS)}",
    )
    group.add_argument(
        "--shape",
        type=shape,
        action="append",
        metavar="NAME=SIZES",
        help="bind symbolic dimensions: an input's whole shape, or a symbol's size",
    )
    group.add_argument(
        "--cpu",
        choices=("auto", "numpy"),
        help="what runs float operators: onnxruntime where numpy has no form, or numpy alone",
    )
    group.add_argument(
        "--io",
        choices=("float", "quantized"),
        help="inputs and outputs of the model's types (float), or without the edges' Q and DQ",
    )
    group.add_argument(
        "--profile",
        choices=("vitral", "vta"),
        help="instruction set of the programs; vta takes graphs of integers (default vitral)",
    )
    group.add_argument(
        "--memory",
        type=positive,
        metavar="BYTES",
        help="DRAM that the device has for the module; one that needs more is refused",
    )

    group.add_argument(
        "--place",
        choices=("accelerator", "cpu", "auto"),
        help="where operators run that could run on either (default accelerator); auto: what takes"
        " the least time by the model",
    )
    add_placement_rules(group)
    group.add_argument(
        "--cpu-table",
        metavar="FILE",
        help="what operators cost on the CPU, by benchmarks/cpu_table.py (with --place auto)",
    )
    group.add_argument(
        "--tflite-rounding",
        choices=("reference", "double", "single", "xnnpack"),
        help="whose bytes a TFLite model gives (default reference)",
    )


def add_placement_rules(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--on-device",
        type=device_rule,
        action="append",
        metavar="NAME=DEVICE",
        help="run a node, an operator such as nn.relu, or a pattern of these on accelerator or cpu",
    )
    parser.add_argument(
        "--fallback-device",
        choices=("accelerator", "cpu"),
        help="where operators run that --on-device does not name",
    )


def compile_options(args: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of `vitral.compile`; only what was given."""
    options = {
        "target": args.target,
        "shapes": dict(args.shape) if args.shape else None,
        "io": args.io,
        "profile": args.profile,
        "memory": args.memory,
        "tflite_rounding": args.tflite_rounding,
        "cpu": args.cpu,
        "place": args.place,
        "on_device": dict(args.on_device) if args.on_device else None,
        "fallback_device": args.fallback_device,
        "cpu_table": args.cpu_table,
    }
    return {name: value for name, value in options.items() if value is not None}


def add_memory_options(parser: argparse.ArgumentParser) -> None:
    default = MemoryModel()
    group = parser.add_argument_group("memory of tsim")
    group.add_argument(
        "--latency",
        type=natural,
        default=default.latency,
        metavar="N",
        help="cycles from a read's address to its first data, and from the last data of a write"
        " to its response (default %(default)s)",
    )
    group.add_argument(
        "--outstanding",
        type=positive,
        default=default.outstanding,
        metavar="N",
        help="reads, and writes, in flight (default %(default)s)",
    )
    group.add_argument(
        "--data-width", type=positive, metavar="N", help="bits of the memory port (64..512)"
    )
    group.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="tsim: random stalls of the memory; reference: random order of the stages",
    )
    group.add_argument(
        "--max-cycles", type=positive, metavar="N", help="give up after so many cycles"
    )


def memory_model(args: argparse.Namespace) -> MemoryModel:
    """The memory that the options describe."""
    return MemoryModel(
        latency=args.latency,
        write_latency=args.latency,
        outstanding=args.outstanding,
        stall_seed=args.seed,
    )
