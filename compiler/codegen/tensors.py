"""Where the elements of activations lie in DRAM."""

from dataclasses import dataclass

from vitral.compiler.schedule.geometry import blocks_of
from vitral.config import CoreConfig
from vitral.runtime.module import ArenaTensor

__all__ = ["TensorView", "tensor_bytes"]


def tensor_bytes(
    shape: tuple[int, int, int, int], pads: tuple[int, int, int, int], config: CoreConfig
) -> int:
    """Bytes of an (N, C, H, W) tensor in blocked form with padding (top, left, bottom, right)."""
    n, c, h, w = shape
    elements = blocks_of(n, config.batch) * blocks_of(c, config.block)
    return elements * (h + pads[0] + pads[2]) * (w + pads[1] + pads[3]) * config.layout.inp_bytes


@dataclass(frozen=True)
class TensorView:
    """A tensor of the arena as a layer sees it: rows and columns count from an origin.

    `height` and `width` are those in DRAM, with padding; `top` and `left` place the origin. `root`
    names the value that it is part of, of `root_blocks` channel blocks, from block `first` on.
    """

    tensor: ArenaTensor
    blocks: int
    height: int
    width: int
    top: int
    left: int
    base: int
    root: str
    root_blocks: int
    first: int

    @staticmethod
    def of(
        tensor: ArenaTensor,
        top: int,
        left: int,
        config: CoreConfig,
        root: ArenaTensor | None = None,
    ) -> "TensorView":
        """The view whose origin is `top` rows and `left` columns into the padded tensor.

        `root` is the tensor that it is part of, if it is part of another one.
        """
        whole = root or tensor
        _, c, h, w = tensor.shape
        pads = tensor.pads
        plane = tensor_bytes((1, 1, h, w), pads, config)
        return TensorView(
            tensor=tensor,
            blocks=blocks_of(c, config.block),
            height=h + pads[0] + pads[2],
            width=w + pads[1] + pads[3],
            top=top,
            left=left,
            base=tensor.offset // config.layout.inp_bytes,
            root=whole.name,
            root_blocks=blocks_of(whole.shape[1], config.block),
            first=(tensor.offset - whole.offset) // plane,
        )

    def element(self, batch: int, block: int, row: int, col: int) -> int:
        """DRAM element, counted from the start of the arena."""
        plane = (batch * self.blocks + block) * self.height
        return self.base + (plane + self.top + row) * self.width + self.left + col

    def channels(self, first: int, count: int) -> slice:
        """Channel blocks of the root, as an index."""
        return slice(self.first + first, self.first + first + count)

    def rows(self, first: int, count: int, step: int = 1) -> slice:
        """Rows of the padded tensor, as an index."""
        start = self.top + first
        return slice(start, start + (count - 1) * step + 1, step)
