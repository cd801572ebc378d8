"""Convolutions for tests of the compiler: random layers, their exact results, and runs."""

from convs.exact import convolve, run_exact
from convs.folders import layer_folder
from convs.layers import chain, conv_layer, random_layer, small_configs
from convs.programs import Compiled, compile_layers, pack, unpack

__all__ = [
    "Compiled",
    "chain",
    "compile_layers",
    "conv_layer",
    "convolve",
    "layer_folder",
    "pack",
    "random_layer",
    "run_exact",
    "small_configs",
    "unpack",
]
