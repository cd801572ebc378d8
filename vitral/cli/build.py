"""`vitral compile`: a model to a module."""

import argparse
from pathlib import Path

from vitral.cli.options import add_compile_options, add_json_option, compile_options
from vitral.cli.output import write_json
from vitral.cli.progress import progress_bar
from vitral.runtime.module import Module

__all__ = ["add_parsers"]


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("compile", help="compile an ONNX or TFLite model to a module")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: MODEL.vitral")
    add_compile_options(parser)
    add_json_option(parser)
    parser.set_defaults(command=_compile)


def _compile(args: argparse.Namespace) -> int:
    from vitral.compiler.pipeline import compile

    with progress_bar() as tell:
        module = compile(args.model, progress=tell, **compile_options(args))
    output = args.output or str(Path(args.model).with_suffix(".vitral"))
    module.save(output)
    if args.json:
        write_json({"module": output, **_summary(module)}, args.json)
    if args.json != "-":
        print(module.describe())
        print(f"module   {output}")
    return 0


def _summary(module: Module) -> dict[str, object]:
    placed = sum(layer.macs for segment in module.segments for layer in segment.layers)
    return {
        "digest": module.config.digest,
        "macs": module.macs,
        "accelerator_macs": placed,
        "arena_bytes": module.arena_bytes,
        "programs": [
            {"name": segment.name, "insns": segment.insn_count} for segment in module.segments
        ],
        "notices": list(module.notices),
    }
