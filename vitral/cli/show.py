"""`vitral show`: a model as text, after any pass, or as a drawing."""

import argparse
import sys
from pathlib import Path

from vitral.cli.options import add_placement_rules, shape

__all__ = ["add_parsers"]


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("show", help="print a model's graph, after any pass")
    parser.add_argument(
        "model", metavar="MODEL", nargs="?", help="an ONNX or TFLite model, or a graph's text (.ir)"
    )
    parser.add_argument("--after", metavar="PASS", help="what the compiler's passes made of it")
    parser.add_argument("--list-passes", action="store_true", help="name them and stop")
    parser.add_argument("--types", action="store_true", help="a type behind every line")
    parser.add_argument("--results", action="store_true", help="the results' types in the head")
    parser.add_argument(
        "--metadata", action="store_true", help="constants and names too (with -o: always)"
    )
    parser.add_argument("--dot", action="store_true", help="a drawing for Graphviz")
    parser.add_argument(
        "--shape",
        type=shape,
        action="append",
        default=[],
        metavar="NAME=SIZES",
        help="bind symbolic dimensions: an input's whole shape, or a symbol's size",
    )
    add_placement_rules(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="in place of stdout")
    parser.set_defaults(command=_show)


def _show(args: argparse.Namespace) -> int:
    from vitral.compiler.after import after_pass, calls_of, pass_names
    from vitral.compiler.ir import to_text
    from vitral.compiler.ir.dot import to_dot
    from vitral.compiler.placement import Rules, place_calls
    from vitral.errors import CompileError

    if args.list_passes:
        for flow, names in pass_names().items():
            print(f"{flow}: {' '.join(names)}")
        return 0
    if args.model is None:
        raise CompileError("show needs a model; see vitral show --help")
    shapes = dict(args.shape)
    rules = Rules(dict(args.on_device or []), args.fallback_device)
    if rules and args.after is not None:
        raise CompileError("--on-device shows the model as it is placed; leave out --after")
    if args.after is None:
        graph = calls_of(args.model, shapes)
        graph = place_calls(graph, rules) if rules else graph
    else:
        graph = after_pass(args.model, args.after, shapes)
    if args.dot:
        text = to_dot(graph)
    else:
        metadata = args.metadata or args.output is not None
        text = to_text(graph, types=args.types, results=args.results, metadata=metadata)
    if args.output is None:
        sys.stdout.write(text)
    else:
        Path(args.output).write_text(text, encoding="utf-8")
    for notice in graph.notices:
        print(f"vitral: {notice}", file=sys.stderr)
    return 0
