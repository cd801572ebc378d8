"""An operator of the plain VTA profile: a layer of the scheduler as it is."""

from dataclasses import dataclass

from vitral.compiler.ir.ops import AccelOp
from vitral.compiler.schedule.vta_layer import VtaLayer

__all__ = ["VtaOp"]


@dataclass(frozen=True, kw_only=True, eq=False)
class VtaOp(AccelOp):
    """int8 in, int8 out; arguments and result are those of `layer`.

    `computes` names the operators of the text form that it stands for, in order.
    """

    kind = "vta.layer"
    layer: VtaLayer
    computes: tuple[str, ...] = ()
