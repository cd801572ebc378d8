"""Sections of .cfg files and values of .weights files."""

import struct

import numpy as np
import pytest

from vitral.compiler.frontends.darknet.sections import parse_cfg
from vitral.compiler.frontends.darknet.weights import WeightReader, write_weights
from vitral.errors import CompileError

CFG = """
[net]
# Testing
width=416   ; pixels
height = 416

[convolutional]
filters=16
anchors = 1.5,2, 3.25 , 4
[route]
layers = -1, 0
"""


def test_sections_in_order_with_layer_numbers() -> None:
    net, conv, route = parse_cfg(CFG)
    assert [(s.kind, s.number, s.line) for s in (net, conv, route)] == [
        ("net", -1, 2),
        ("convolutional", 0, 7),
        ("route", 1, 10),
    ]
    assert (net.whole("width"), net.whole("height")) == (416, 416)
    assert conv.reals("anchors") == (1.5, 2.0, 3.25, 4.0)
    assert route.wholes("layers") == (-1, 0)
    assert conv.whole("size", 1) == 1
    assert not conv.flag("batch_normalize")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"needs \[net\]"),
        ("[convolutional]\n", r"needs \[net\]"),
        ("[net]\n", "at least one layer"),
        ("width=3\n[net]", "cfg line 1: needs"),
        ("[net]\n[conv]\nnonsense\n", "cfg line 3: needs"),
    ],
)
def test_malformed(text: str, said: str) -> None:
    with pytest.raises(CompileError, match=said):
        parse_cfg(text)


@pytest.mark.parametrize("reader", ["whole", "real", "wholes", "reals", "flag"])
def test_options_that_are_no_numbers(reader: str) -> None:
    (_, section) = parse_cfg("[net]\n[conv]\nsize=three\n")
    with pytest.raises(CompileError, match=r"cfg line 2 \[conv\], layer 0: size needs .*'three'"):
        getattr(section, reader)("size")


def test_values_in_order() -> None:
    first, second = np.arange(3, dtype=np.float32), np.full((2, 2), 1 / 3, np.float32)
    data = write_weights([first, second])
    assert data[:20] == struct.pack("<3iq", 0, 2, 0, 0)
    reader = WeightReader(data)
    np.testing.assert_array_equal(reader.take((3,), "here"), first)
    np.testing.assert_array_equal(reader.take((2, 2), "here"), second)
    reader.finish()


def test_the_older_header_is_shorter() -> None:
    reader = WeightReader(struct.pack("<4i", 0, 1, 0, 7) + struct.pack("<f", 2.5))
    assert reader.take((1,), "here") == np.float32(2.5)
    reader.finish()


def test_too_few_and_too_many() -> None:
    reader = WeightReader(write_weights([np.zeros(3, np.float32)]))
    with pytest.raises(CompileError, match="conv: needs 4 weights, 3 are left"):
        reader.take((2, 2), "conv")
    with pytest.raises(CompileError, match="3 values are left behind the last layer"):
        reader.finish()


@pytest.mark.parametrize(
    "data", [b"", bytes(15), struct.pack("<3i", 0, 2, 0) + bytes(5), b"PK\x03\x04" + bytes(40)]
)
def test_no_weights_file(data: bytes) -> None:
    with pytest.raises(CompileError, match=r"^weights file: needs [^\n]*$"):
        WeightReader(data)
