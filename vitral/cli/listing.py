"""`vitral disasm` and `vitral verify`: what is in a module, and whether it is right."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vitral.assembly import disassemble
from vitral.cli.models import load_module
from vitral.cli.options import add_compile_options, add_json_option
from vitral.cli.output import write_json
from vitral.config import INSN_BYTES
from vitral.isa import InstructionSet, Profile
from vitral.program import ProgramFolder
from vitral.runtime.module import Module, Segment
from vitral.verify import Image, Report, check_folder, check_module

__all__ = ["add_parsers", "listing_lines"]

MISMATCH = 1
NUMBER_COLUMN = 100


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    disasm = commands.add_parser("disasm", help="print the instructions of a module")
    disasm.add_argument("model", metavar="MODEL", help="an ONNX or TFLite model, or a module")
    add_compile_options(disasm)
    disasm.set_defaults(command=_disasm)
    verify = commands.add_parser("verify", help="check bounds, tokens and hazards of programs")
    verify.add_argument(
        "model", metavar="MODEL", help="a module, an ONNX or TFLite model, or a program folder"
    )
    add_compile_options(verify)
    add_json_option(verify)
    verify.set_defaults(command=_verify)


def _disasm(args: argparse.Namespace) -> int:
    module = load_module(args)
    for segment in module.segments:
        print(f"# program {segment.name}: {segment.insn_count} instructions")
        for line in _segment_lines(segment, module):
            print(line)
    return 0


def _segment_lines(segment: Segment, module: Module) -> Iterator[str]:
    size = segment.insn_count * INSN_BYTES
    data = Image(module.image).read(segment.insn_offset, size)
    words = np.zeros(size, np.uint8) if data is None else data
    starts = {layer.first: layer for layer in segment.layers}
    isa = InstructionSet.of(module.config)
    for number, line in enumerate(listing_lines(words.tobytes(), Profile.VITRAL, isa)):
        if number in starts:
            layer = starts[number]
            yield f"# layer {layer.name}: {layer.op}, {layer.macs:,} MACs"
        yield line


def listing_lines(words: bytes, profile: Profile, isa: InstructionSet) -> Iterator[str]:
    """Each instruction as text that assembles again, its number in a comment."""
    for index in range(len(words) // INSN_BYTES):
        word = int.from_bytes(words[index * INSN_BYTES : (index + 1) * INSN_BYTES], "little")
        text = disassemble(word, profile, isa)
        yield f"{text:<{NUMBER_COLUMN}}  # {index}"


def _verify(args: argparse.Namespace) -> int:
    if Path(args.model).is_dir():
        reports = [check_folder(ProgramFolder.load(args.model))]
    else:
        reports = check_module(load_module(args))
    if args.json:
        write_json([_record(report) for report in reports], args.json)
    if args.json != "-":
        for report in reports:
            _print(report)
    return 0 if all(report.ok for report in reports) else MISMATCH


def _record(report: Report) -> dict[str, object]:
    findings = [{"index": item.index, "text": item.text} for item in report.findings]
    return {
        "program": report.name,
        "ok": report.ok,
        "insns": report.insns,
        "findings": findings,
    }


def _print(report: Report) -> None:
    if report.ok:
        print(report.message)
    for finding in report.findings:
        print(f"{report.name}: {finding}")
