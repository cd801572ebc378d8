"""`vitral quantize`: a float model to int8."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitral.cli.options import positive, shape
from vitral.cli.output import print_table, write_json
from vitral.cli.progress import progress_bar
from vitral.errors import QuantizeError

if TYPE_CHECKING:
    from vitral.compiler.quantize.report import Report

__all__ = ["add_parsers"]

SCHEMES = ("calibrated", "global-scale")
METHODS = ("minmax", "percentile", "entropy", "mse")
ACTIVATIONS = ("affine", "symmetric")
_CALIBRATED = (
    *("calibrate", "method", "percentile", "per_tensor", "activations", "bias_correction"),
    *("equalize", "batch", "report", "labels", "test", "suggest", "exclude"),
)
_GLOBAL = (
    *("global_scale", "skip_k_conv", "nbit_input", "nbit_weight"),
    *("round_for_shift", "store_lowbit_output"),
)


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("quantize", help="quantize a float ONNX model to int8")
    parser.add_argument("model", metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: MODEL.int8.onnx")
    parser.add_argument(
        "--scheme",
        choices=SCHEMES,
        default=SCHEMES[0],
        help="scales measured on data, or powers of two from one global scale (default calibrated)",
    )
    parser.add_argument(
        "--shape",
        type=shape,
        action="append",
        metavar="NAME=SIZES",
        help="bind symbolic dimensions: an input's whole shape, or a symbol's size",
    )
    parser.add_argument(
        "--exclude", nargs="+", action="extend", default=[], metavar="NODE", help="stay float"
    )
    _add_calibrated(parser)
    _add_global(parser)
    parser.set_defaults(command=_quantize)


def _add_calibrated(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("calibrated")
    group.add_argument(
        "--calibrate",
        metavar="FILE.npz",
        help="samples for each input by name, or an .npy file for one input",
    )
    group.add_argument(
        "--method", choices=METHODS, help="how ranges are chosen from values (default mse)"
    )
    group.add_argument(
        "--percentile", type=float, metavar="P", help="per cent of values kept on each side"
    )
    group.add_argument(
        "--per-tensor", action="store_true", help="one scale for all channels of weights"
    )
    group.add_argument(
        "--activations", choices=ACTIVATIONS, help="any zero points (affine), or zero ones"
    )
    group.add_argument(
        "--bias-correction",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="take the mean error of each channel out by its bias (default)",
    )
    group.add_argument("--equalize", action="store_true", help="even out channels between layers")
    group.add_argument(
        "--batch", type=positive, metavar="N", help="samples at once, if the model leaves it open"
    )
    group.add_argument(
        "--report", metavar="FILE.json", help="measure every layer; - for stdout, without a table"
    )
    group.add_argument("--labels", metavar="FILE.npy", help="the right class of each sample")
    group.add_argument(
        "--test", metavar="FILE.npz", help="samples that top-1 is taken on, in place of --calibrate"
    )
    group.add_argument(
        "--suggest",
        type=int,
        default=0,
        metavar="N",
        help="try the N noisiest layers as float, and say which of them gain",
    )


def _add_global(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("global-scale")
    group.add_argument(
        "--global-scale", type=float, metavar="S", help="largest magnitude of activations"
    )
    group.add_argument(
        "--skip-k-conv", type=int, metavar="K", help="so many convolutions stay float first"
    )
    group.add_argument("--nbit-input", type=int, metavar="N", help="bits of activations")
    group.add_argument("--nbit-weight", type=int, metavar="N", help="bits of weights")
    group.add_argument(
        "--no-round-for-shift", dest="round_for_shift", action="store_false", default=None
    )
    group.add_argument(
        "--no-store-lowbit-output", dest="store_lowbit_output", action="store_false", default=None
    )


def _quantize(args: argparse.Namespace) -> int:
    """Options of the other scheme are refused, not ignored."""
    own, other = _CALIBRATED, _GLOBAL
    if args.scheme == SCHEMES[1]:
        own, other = other, own
    for name in other:
        if getattr(args, name) not in (None, False, 0, []):
            option = f"--{name.replace('_', '-')}"
            raise QuantizeError(f"{option} is no option of --scheme {args.scheme}")
    return _global_scale(args) if args.scheme == SCHEMES[1] else _calibrated(args)


def _global_scale(args: argparse.Namespace) -> int:
    from vitral import ir
    from vitral.compiler.quantize.global_scale import QConfig, quantize

    given = {name: getattr(args, name) for name in _GLOBAL}
    qconfig = QConfig(**{name: value for name, value in given.items() if value is not None})
    graph = quantize(ir.from_onnx(args.model, dict(args.shape or ())), qconfig=qconfig)
    output = args.output or str(Path(args.model).with_suffix(".ir"))
    ir.save(graph, output)
    print(f"{output}: {len(graph.ops)} operators")
    return 0


def _calibrated(args: argparse.Namespace) -> int:
    from vitral.compiler.quantize.explain import explain
    from vitral.compiler.quantize.quantize import quantize
    from vitral.compiler.quantize.samples import load_samples

    if args.calibrate is None:
        raise QuantizeError("needs --calibrate FILE.npz, an array of samples for each input")
    output = args.output or str(Path(args.model).with_suffix(".int8.onnx"))
    measured = args.report or args.labels or args.test or args.suggest
    with progress_bar() as tell:
        quantized = quantize(
            args.model,
            args.calibrate,
            _config(args),
            shapes=dict(args.shape) if args.shape else None,
            progress=tell,
        )
        Path(output).write_bytes(quantized.model.SerializeToString())
        report = None
        if measured:
            batch = quantized.samples.batch
            test = load_samples(quantized.graph, args.test, batch) if args.test else None
            labels = _labels(args.labels) if args.labels else None
            report = explain(quantized, test=test, labels=labels, tries=args.suggest, progress=tell)
    if report is not None and args.report:
        write_json({"model": output, **report.to_dict()}, args.report)
    if args.report != "-":
        print(f"{output}: {_summary(quantized)}")
        if report is not None:
            _print(report)
    return 0


def _config(args: argparse.Namespace) -> Any:
    """Only what was given, so that defaults stay where they are defined."""
    from vitral.compiler.quantize.config import QuantizeConfig

    given = {
        "method": args.method,
        "percentile": args.percentile,
        "activations": args.activations,
        "bias_correction": args.bias_correction,
        "batch": args.batch,
    }
    return QuantizeConfig(
        per_channel=not args.per_tensor,
        equalize=args.equalize,
        exclude=tuple(args.exclude),
        **{name: value for name, value in given.items() if value is not None},
    )


def _labels(path: str) -> Any:
    from vitral.compiler.quantize.samples import read_arrays

    found = read_arrays(path)
    if isinstance(found, dict):
        if len(found) != 1:
            raise QuantizeError(f"{path}: needs one array of labels, got {', '.join(found)}")
        (found,) = found.values()
    return found


def _summary(quantized: Any) -> str:
    nodes = quantized.graph.nodes
    left = [n for n in nodes if n.name not in quantized.selection.nodes]
    text = f"{len(nodes) - len(left)} of {len(nodes)} operators read int8"
    if left:
        text += f"; float: {', '.join(f'{n.name} ({n.op_type})' for n in left[:8])}"
        text += f" and {len(left) - 8} more" if len(left) > 8 else ""
    return text


def _print(report: "Report") -> None:
    rows = [
        (
            *(layer.node or layer.tensor, layer.op, f"{layer.least:.4g}", f"{layer.most:.4g}"),
            *(f"{layer.low:.4g}", f"{layer.high:.4g}", _decibels(layer.sqnr_db), layer.saturated),
        )
        for layer in report.layers
    ]
    header = ("layer", "operator", "least", "most", "low", "high", "SQNR dB", "saturated")
    print_table(header, rows, f"codes by {report.method} on {report.samples} samples")
    outcome = report.outcome
    print(f"SQNR of the first output: {_decibels(report.sqnr_db)} dB")
    print(f"top-1 of float and int8 agree on {outcome.agreement:.2%} of {outcome.rows}")
    if outcome.float_top1 is not None and outcome.int8_top1 is not None:
        print(f"top-1 of float {outcome.float_top1:.2%}, of int8 {outcome.int8_top1:.2%}")
    for found in report.suggestions:
        print(
            f"as float, {found.node} ({found.op}) gains {found.gain_db:.1f} dB:"
            f" --exclude {found.node}"
        )


def _decibels(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
