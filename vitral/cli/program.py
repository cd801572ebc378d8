"""`vitral program`: raw program folders."""

import argparse

from vitral.cli.listing import listing_lines
from vitral.cli.options import add_json_option, add_memory_options, memory_model
from vitral.cli.output import write_json
from vitral.isa import InstructionSet
from vitral.program import ProgramFolder
from vitral.runtime.programs import SIMULATORS, ProgramResult, run_folder

__all__ = ["add_parsers"]

MISMATCH = 1


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    group = commands.add_parser("program", help="run or list a raw program folder")
    verbs = group.add_subparsers(title="what to do", metavar="VERB", required=True)
    run = verbs.add_parser("run", help="run a program and compare its result")
    run.add_argument("folder", metavar="DIR")
    run.add_argument("--device", choices=tuple(SIMULATORS), default="fsim")
    add_memory_options(run)
    add_json_option(run)
    run.set_defaults(command=_run)
    disasm = verbs.add_parser("disasm", help="print a program's instructions")
    disasm.add_argument("folder", metavar="DIR")
    disasm.set_defaults(command=_disasm)


def _run(args: argparse.Namespace) -> int:
    result = run_folder(
        ProgramFolder.load(args.folder),
        args.device,
        memory_model=memory_model(args),
        seed=args.seed,
        data_bits=args.data_width,
        max_cycles=args.max_cycles,
    )
    if args.json:
        write_json(result.to_dict(), args.json)
    if args.json != "-":
        _print(result)
    result.outcome.raise_for_status()
    return MISMATCH if result.match is False else 0


def _print(result: ProgramResult) -> None:
    verdict = {True: "match", False: "MISMATCH", None: "nothing to compare with"}[result.match]
    cycles = "" if result.outcome.cycles is None else f", {result.outcome.cycles:,} cycles"
    print(f"{result.name} on {result.device}: {verdict}, {result.insns} instructions{cycles}")
    for line in result.differences:
        print(f"  {line}")


def _disasm(args: argparse.Namespace) -> int:
    folder = ProgramFolder.load(args.folder)
    isa = InstructionSet.of(folder.config)
    for line in listing_lines(folder.region("INSN").data, folder.launch.profile, isa):
        print(line)
    return 0
