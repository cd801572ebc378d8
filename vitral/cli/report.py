"""`vitral report`: a page about a run on the RTL."""

import argparse
from pathlib import Path

from vitral.cli.models import load_module
from vitral.cli.options import add_compile_options, add_memory_options, memory_model
from vitral.cli.run import device_options, read_arrays

__all__ = ["add_parsers"]


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("report", help="run on the RTL and write a page about the cycles")
    parser.add_argument("model", metavar="MODEL", help="an ONNX or TFLite model, or a module")
    parser.add_argument(
        "-o", "--output", metavar="FILE.html", help="default: MODEL.html, beside the model"
    )
    parser.add_argument(
        "--input", metavar="FILE.npz", help="arrays by the inputs' names; seeded ones by default"
    )
    add_compile_options(parser)
    add_memory_options(parser)
    parser.set_defaults(command=_report, device="tsim")


def _report(args: argparse.Namespace) -> int:
    from vitral.report.page import report_page
    from vitral.report.run import record_run, sample_feeds

    module = load_module(args)
    feeds = read_arrays(args.input) if args.input else sample_feeds(module)
    config, _ = device_options(args, module.config)
    run = record_run(
        module, feeds, memory=memory_model(args), config=config, max_cycles=args.max_cycles
    )
    output = Path(args.output) if args.output else Path(args.model).with_suffix(".html")
    output.write_text(report_page(run, Path(args.model).stem))
    print(f"{output}: {len(run.layers)} layers, {run.cycles:,} cycles")
    return 0
