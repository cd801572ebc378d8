"""The Darknet frontend."""

from vitral.compiler.frontends.darknet.importer import Detector, import_darknet
from vitral.compiler.frontends.darknet.layers import LAYERS
from vitral.compiler.frontends.darknet.weights import write_weights

__all__ = ["LAYERS", "Detector", "import_darknet", "write_weights"]
