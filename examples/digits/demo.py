"""Read 100 handwritten digits on the RTL simulator and check every byte.

The int8 network in this folder is compiled, run on the emitted Verilog in Verilator (or on another
device with `--device`), and compared with the exact oracle of the tests and with onnxruntime.
"""

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import vitral

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "tests"))

import oracle  # noqa: E402  # the tests' oracle, from the path just added

MODEL = FOLDER / "digits_int8.onnx"
Array = npt.NDArray[Any]


@dataclass
class Tally:
    """What the images said so far."""

    predictions: list[int] = field(default_factory=list)
    bytes: int = 0
    differing: int = 0
    tensors: set[str] = field(default_factory=set)
    runtime_differences: Counter[str] = field(default_factory=Counter)
    farthest_from_tie: float = 0.0
    cycles: int = 0


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--device", default="tsim", help="tsim (the RTL), fsim or reference")
    arguments.add_argument("--images", type=int, default=100, help="how many, at most 100")
    options = arguments.parse_args()

    console = Console()
    with np.load(FOLDER / "digits_images.npz") as archive:
        pixels = archive["demo_images"][: options.images]
        labels = archive["demo_labels"][: options.images]

    start = time.perf_counter()
    module = vitral.compile(MODEL)
    console.print(f"compiled {MODEL.name} in {time.perf_counter() - start:.1f} s")
    for notice in module.notices:
        console.print(f"  {notice}")
    console.print(f"opening {options.device} (the first time, the core is built; about a minute)")
    with vitral.Session(module, device=options.device) as session:
        tally = read_all(session, pixels, console)
        show_images(console, pixels, labels, tally)
        show_layers(console, session)
    return report(console, labels, tally)


def read_all(session: vitral.Session, pixels: Array, console: Console) -> Tally:
    """Run all images, checking each tensor between steps against the oracle."""
    tally = Tally()
    peer = _onnxruntime_session()
    with Progress(console=console) as progress:
        for image in progress.track(pixels, description="images"):
            x = (image.astype(np.float32) / np.float32(255)).reshape(1, 1, 28, 28)
            (logits,) = session.run(None, {"image": x})
            tally.predictions.append(int(np.argmax(logits)))
            tally.cycles += sum(outcome.cycles or 0 for outcome in session.outcomes())
            unrounded: dict[str, Array] = {}
            expected = oracle.evaluate(MODEL, {"image": x}, unrounded=unrounded)
            check(tally, expected, {**session.tensors(), "logits": logits})
            check_onnxruntime(tally, peer, x, expected, unrounded)
    return tally


def check(tally: Tally, expected: dict[str, Array], actual: dict[str, Array]) -> None:
    for name in expected.keys() & actual.keys():
        want, got = expected[name], actual[name]
        same_form = want.shape == got.shape and want.dtype == got.dtype
        wrong = (want != got).sum() * want.itemsize if same_form else want.nbytes
        tally.bytes += want.nbytes
        tally.differing += int(wrong)
        tally.tensors.add(name)


def _onnxruntime_session() -> onnxruntime.InferenceSession:
    """Unoptimised, so that every tensor of the model exists and can be compared."""
    import onnx

    model = onnx.load(MODEL)
    known = {output.name for output in model.graph.output}
    quantized = [n.output[0] for n in model.graph.node if n.op_type == "QuantizeLinear"]
    model.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT8, None)
        for name in quantized
        if name not in known
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def check_onnxruntime(
    tally: Tally,
    peer: onnxruntime.InferenceSession,
    x: Array,
    expected: dict[str, Array],
    unrounded: dict[str, Array],
) -> None:
    names = [output.name for output in peer.get_outputs()]
    still_equal = True
    for name, got in zip(names, peer.run(None, {"image": x}), strict=True):
        differ = got != expected[name]
        tally.runtime_differences[name] += int(differ.sum())
        if differ.any() and still_equal and name in unrounded:
            value = np.asarray(unrounded[name], np.float64)[differ]
            distance = np.abs(np.abs(value - np.floor(value)) - 0.5).max()
            tally.farthest_from_tie = max(tally.farthest_from_tie, float(distance))
        # Behind a tensor that differs, differences need no tie of their own.
        still_equal = still_equal and not differ.any()


def show_images(console: Console, pixels: Array, labels: Array, tally: Tally) -> None:
    """As many images as fit side by side, each with its prediction; two rows to a line."""
    shades = " .:-=+*#%@"
    chosen = range(min(console.width // 30, 4, len(pixels)))
    for row in range(2, 26, 2):
        line = (
            "".join(shades[int(p) * 9 // 255] for p in pixels[n][row : row + 2].max(0))
            for n in chosen
        )
        console.print("  ".join(line), highlight=False, markup=False, no_wrap=True)
    said = (f"read as {tally.predictions[n]}, is {labels[n]}".ljust(28) for n in chosen)
    console.print("  ".join(said), no_wrap=True)
    rows = zip(tally.predictions, labels.tolist(), strict=True)
    marks = "".join(f"[red]{got}[/red]" if got != want else str(got) for got, want in rows)
    console.print(f"all predictions: {marks}", highlight=False)


def show_layers(console: Console, session: vitral.Session) -> None:
    table = Table(title="layers of the last image")
    for column in ("layer", "device", "MACs", "cycles", "roofline", "utilisation"):
        table.add_column(column, justify="left" if column in ("layer", "device") else "right")
    for layer in session.profile():
        table.add_row(
            layer.name,
            layer.device,
            f"{layer.macs:,}" if layer.macs else "",
            f"{layer.cycles:,}" if layer.cycles else "",
            f"{layer.roofline_cycles:,}" if layer.roofline_cycles else "",
            f"{layer.utilisation:.1%}" if layer.utilisation else "",
        )
    console.print(table)


def report(console: Console, labels: Array, tally: Tally) -> int:
    """Print the sums; the exit status is 0 only when no byte differs."""
    correct = int((np.array(tally.predictions) == labels).sum())
    console.print(f"accuracy: {correct} of {len(labels)} images")
    if tally.cycles:
        console.print(f"cycles on the accelerator: {tally.cycles / len(labels):,.0f} per image")
    console.print(
        f"oracle: {tally.differing} of {tally.bytes:,} bytes differ"
        f" ({len(tally.tensors)} tensors of every image)"
    )
    inner = sum(n for name, n in tally.runtime_differences.items() if name != "logits")
    console.print(
        f"onnxruntime, unoptimised: {tally.runtime_differences['logits']} output values differ;"
        f" {inner} inside the network, at most {tally.farthest_from_tie:.1e} steps from a tie"
        " where nothing before differed"
    )
    return 0 if tally.differing == 0 and tally.bytes > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
