"""`vitral run`: a model or module on a device."""

import argparse
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt

from vitral.cli.models import load_module
from vitral.cli.options import (
    add_compile_options,
    add_device_options,
    add_json_option,
    add_memory_options,
    device,
    memory_model,
)
from vitral.cli.output import print_table, write_compact_json, write_json
from vitral.config import CoreConfig
from vitral.errors import DeviceError
from vitral.report import trace_events, write_gtkwave
from vitral.runtime.device import REMOTE
from vitral.runtime.profile import LayerProfile
from vitral.runtime.session import Session

__all__ = ["add_parsers", "profile_table"]

Arrays = dict[str, npt.NDArray]


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("run", help="run a model or module on a device")
    parser.add_argument("model", metavar="MODEL", help="an ONNX or TFLite model, or a module")
    parser.add_argument("--device", type=device, metavar="NAME", default="fsim")
    parser.add_argument(
        "--input", metavar="FILE.npz", required=True, help="arrays by the inputs' names"
    )
    parser.add_argument("--output", metavar="FILE.npz", help="arrays by the outputs' names")
    parser.add_argument(
        "--timeout", type=float, metavar="SECONDS", help="that one program may take on this host"
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE.json",
        help="what each stage of tsim did when, for Perfetto or chrome://tracing",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE.fst",
        help="waveform of all signals on tsim, with FILE.gtkw for GTKWave beside it",
    )
    add_device_options(parser)
    add_compile_options(parser)
    add_memory_options(parser)
    add_json_option(parser)
    parser.set_defaults(command=_run)


def _run(args: argparse.Namespace) -> int:
    _check_recording(args)
    inputs = read_arrays(args.input)
    module = load_module(args)
    config, options = device_options(args, module.config)
    options |= dict(args.option)
    with Session(module, args.device, config=config, timeout=args.timeout, **options) as session:
        results = session.run(None, inputs)
        names = [info.name for info in session.get_outputs()]
        profile = session.profile()
        if args.timeline:
            write_compact_json(trace_events(module, session.outcomes(), profile), args.timeline)
    if args.trace:
        write_gtkwave(Path(args.trace), config)
    outputs = dict(zip(names, results, strict=True))
    if args.output:
        write_arrays(args.output, outputs)
    if args.json:
        write_json(_result(args, module.macs, outputs, profile), args.json)
    if args.json != "-":
        _print(outputs, profile)
    return 0


def _check_recording(args: argparse.Namespace) -> None:
    for option in ("timeline", "trace"):
        if getattr(args, option) and args.device.startswith(REMOTE):
            raise DeviceError(f"--{option} needs --device tsim on this machine, got {args.device}")
        if getattr(args, option) and args.device != "tsim":
            raise DeviceError(f"--{option} needs --device tsim; {args.device} has no clock")


def device_options(
    args: argparse.Namespace, config: CoreConfig
) -> tuple[CoreConfig, dict[str, Any]]:
    """The device's core and options; devices take those that mean something to them."""
    if args.data_width and args.device.startswith(REMOTE):
        raise DeviceError(f"--data-width is for devices here; {args.device} has the server's core")
    if args.data_width:
        config = replace(config, data_bits=args.data_width)
    if args.device == "tsim":
        options = {"memory_model": memory_model(args), "max_cycles": args.max_cycles}
        trace, timeline = getattr(args, "trace", None), getattr(args, "timeline", None)
        recording = {"trace": trace, "timeline": bool(timeline)}
        return config, options | {name: value for name, value in recording.items() if value}
    return config, {"order_seed": args.seed} if args.device == "reference" else {}


def read_arrays(path: str) -> Arrays:
    """The arrays of an .npz file; DeviceError when it is not one."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except (OSError, ValueError, AttributeError, EOFError, TypeError, BadZipFile, zlib.error):
        raise DeviceError(f"{path}: not an .npz file with numeric arrays by name") from None


def write_arrays(path: str, arrays: Mapping[str, npt.NDArray]) -> None:
    """An .npz file of exactly that name; arrays may have names that numpy's savez keeps."""
    with ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)


def _result(
    args: argparse.Namespace, macs: int, outputs: Arrays, profile: Sequence[LayerProfile]
) -> dict[str, Any]:
    cycles = [entry.cycles for entry in profile if entry.cycles is not None]
    return {
        "model": args.model,
        "device": args.device,
        "macs": macs,
        "outputs": [
            {
                "name": name,
                "dtype": str(array.dtype),
                "shape": list(array.shape),
                "crc32": f"{zlib.crc32(array.tobytes()):08x}",
            }
            for name, array in outputs.items()
        ],
        "layers": [entry.to_dict() for entry in profile],
        "total_cycles": sum(cycles) if cycles else None,
    }


def _print(outputs: Arrays, profile: Sequence[LayerProfile]) -> None:
    profile_table(profile)
    for name, array in outputs.items():
        print(f"{name}: {array.dtype} {array.shape}, CRC-32 {zlib.crc32(array.tobytes()):08x}")


def profile_table(profile: Sequence[LayerProfile]) -> None:
    """One line per layer, and one for all when there are cycles."""
    rows: list[list[object]] = [
        [
            entry.name,
            entry.kernel or entry.op,
            entry.direction or entry.device,
            entry.macs,
            entry.cycles,
            entry.roofline_cycles,
            entry.utilisation,
            entry.read_bytes + entry.write_bytes,
        ]
        for entry in profile
    ]
    header = ("layer", "kernel", "device", "MACs", "cycles", "roofline", "utilisation", "bytes")
    print_table(header, rows)
