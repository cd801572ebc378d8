"""Darknet networks, a .cfg with a .weights file, as graphs of calls."""

from dataclasses import dataclass
from pathlib import Path

from vitral.compiler.frontends.darknet.layers import LAYERS, Network
from vitral.compiler.frontends.darknet.sections import parse_cfg
from vitral.compiler.frontends.darknet.weights import WeightReader
from vitral.compiler.ir.build import GraphBuilder
from vitral.compiler.ir.graph import Graph
from vitral.compiler.ir.types import TensorType
from vitral.errors import CompileError
from vitral.runtime.detection import Head

__all__ = ["Detector", "import_darknet"]

INPUT = "data"


@dataclass(frozen=True)
class Detector:
    """A float graph and what its outputs mean.

    Parameters
    ----------
    graph : Graph
        One input "data", float32 (1, channels, height, width), values 0 to 1. Its outputs are what
        the heads read, in their order; without heads the last layer's result.
    heads : tuple of Head
        One for each [region] or [yolo] layer.
    """

    graph: Graph
    heads: tuple[Head, ...]


def import_darknet(cfg: str | Path, weights: bytes | Path) -> Detector:
    """Read a network.

    Parameters
    ----------
    cfg : str or Path
        The text, or the file that has it.
    weights : bytes or Path
        The .weights file or its bytes.

    Raises
    ------
    CompileError
        In one line naming the section: unknown layers and options that change results, weights
        that do not fit the network.
    """
    net_section, *sections = parse_cfg(_text(cfg))
    unknown = sorted({s.kind for s in sections if s.kind not in LAYERS})
    if unknown:
        raise CompileError(f"cfg: layers that are not supported: {', '.join(unknown)}")
    shape = tuple(net_section.whole(name) for name in ("channels", "height", "width"))
    if min(shape) < 1:
        raise CompileError(f"{net_section.where}: needs sizes of at least 1, got {list(shape)}")
    builder = GraphBuilder({INPUT: TensorType((1, *shape), "float32")})
    net = Network(INPUT, builder, WeightReader(_bytes(weights)))
    for section in sections:
        net.results.append(LAYERS[section.kind](net, section))
    net.weights.finish()
    outputs = dict.fromkeys(head.value for head in net.heads) or [net.last]
    return Detector(builder.graph(*outputs), tuple(net.heads))


def _text(cfg: str | Path) -> str:
    if isinstance(cfg, str) and "\n" in cfg:
        return cfg
    try:
        return Path(cfg).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"cfg {str(cfg)[:200]!r}: cannot be read: {error}") from None


def _bytes(weights: bytes | Path) -> bytes:
    if isinstance(weights, bytes):
        return weights
    try:
        return Path(weights).read_bytes()
    except OSError as error:
        raise CompileError(f"weights file {str(weights)!r}: cannot be read: {error}") from None
