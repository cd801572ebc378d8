"""The NNVM frontend."""

from vitral.compiler.frontends.nnvm.importer import import_nnvm
from vitral.compiler.frontends.nnvm.operators import OPERATORS
from vitral.compiler.frontends.nnvm.params import load_params, save_params

__all__ = ["OPERATORS", "import_nnvm", "load_params", "save_params"]
