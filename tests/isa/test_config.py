"""Configurations: what follows from them, and refusals with the numbers in one line."""

from typing import Any

import pytest

from vitral.config import CoreConfig
from vitral.errors import ConfigError
from vitral.isa import InstructionSet


def test_the_default_is_the_published_configuration() -> None:
    layout = CoreConfig().layout
    assert (layout.uop_depth, layout.inp_depth, layout.wgt_depth, layout.acc_depth) == (
        8192,
        2048,
        1024,
        2048,
    )
    assert (layout.inp_bytes, layout.wgt_bytes, layout.acc_bytes) == (16, 256, 64)
    assert (layout.uop_index_bits, layout.inp_index_bits) == (13, 11)
    assert (layout.wgt_index_bits, layout.acc_index_bits) == (10, 11)


LANES: list[tuple[dict[str, Any], int, tuple[int, int]]] = [
    ({}, 8, (2, 128)),
    ({"requant_lanes": 4}, 4, (4, 64)),
    ({"requant_lanes": 1}, 1, (16, 16)),
    ({"requant_lanes": 1, "data_bits": 256}, 1, (8, 32)),
    ({"data_bits": 128}, 16, (1, 256)),
    ({"data_bits": 512}, 16, (1, 256)),
    ({"block": 4}, 4, (1, 64)),
    ({"block": 4, "batch": 4}, 8, (1, 64)),
]


@pytest.mark.parametrize(("values", "lanes", "rows"), LANES)
def test_the_requantiser_has_as_many_lanes_as_the_bus_has_bytes(
    values: dict[str, Any], lanes: int, rows: tuple[int, int]
) -> None:
    layout = CoreConfig(acc_buffer=32 << 10, uop_buffer=4 << 10, **values).layout
    assert layout.requant_lanes == lanes
    assert (layout.param_rows, layout.param_row_bytes) == rows


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"batch": 3}, "batch must be 1, 2 or 4, got 3"),
    ({"block": 12}, "block must be 4, 8, 16 or 32, got 12"),
    ({"block": 16.0}, "block must be an int, got 16.0"),
    ({"batch": True}, "batch must be an int, got True"),
    ({"inp_buffer": 3000}, "inp_buffer must be a power of two in bytes, got 3000"),
    ({"uop_buffer": 0}, "uop_buffer must be a power of two in bytes, got 0"),
    ({"param_depth": 100}, "param_depth must be 2**n, 2..32768, got 100"),
    ({"queue_depth": 1}, "queue_depth must be 2..4096 instructions, got 1"),
    ({"token_capacity": 65536}, "token_capacity must be 1..65535 tokens, got 65536"),
    ({"data_bits": 96}, "data_bits must be 64, 128, 256 or 512 bits, got 96"),
    ({"addr_bits": 31}, "addr_bits must be 32..64 bits, got 31"),
    ({"burst_beats": 512}, "burst_beats must be 2**n, 1..256, got 512"),
    ({"burst_beats": 256, "data_bits": 256}, "256 x 32 bytes = 8192 bytes"),
    ({"acc_banks": 3}, "acc_banks must be 1, 2 or 4 banks, got 3"),
    ({"requant_lanes": 3}, "requant_lanes must be one of [1, 2, 4, 8] or 0 for the most, got 3"),
    ({"requant_lanes": 16}, "got 16; the store stage hands over 8 bytes per cycle"),
    ({"requant_lanes": 8, "block": 4}, "[1, 2, 4] or 0 for the most, got 8"),
    ({"requant_lanes": -1}, "got -1"),
    ({"wgt_buffer": 1024}, "wgt_buffer 1024 bytes holds 4 elements of 256 bytes, needs 8"),
    ({"inp_buffer": 2 << 20}, "inp_buffer holds 131072 elements, the 16-bit sram_base reaches"),
]


@pytest.mark.parametrize(("values", "reason"), REFUSED)
def test_refusals(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CoreConfig(**values)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


SMALL: dict[str, Any] = {"block": 8, "uop_buffer": 4096, "inp_buffer": 4096, "wgt_buffer": 8192}
TOO_WIDE: list[tuple[dict[str, Any], str]] = [
    ({"acc_buffer": 256 << 10}, "GEMM needs 138 bits, an encoding has 128"),
    ({"uop_buffer": 64 << 10}, "GEMM needs 148 bits, an encoding has 128"),
    (SMALL | {"acc_buffer": 128 << 10}, "ALU needs 144 bits, an encoding has 128"),
]


@pytest.mark.parametrize(("values", "reason"), TOO_WIDE)
def test_an_instruction_that_does_not_fit_is_refused(values: dict[str, Any], reason: str) -> None:
    config = CoreConfig(**values)
    with pytest.raises(ConfigError) as caught:
        InstructionSet(config)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_digest_names_the_architecture_only() -> None:
    digest = CoreConfig().digest
    assert CoreConfig(requant_lanes=4).digest == digest
    assert CoreConfig(data_bits=128, burst_beats=64, acc_banks=2, outstanding=4).digest == digest
    changes: tuple[dict[str, Any], ...] = (
        {"block": 8},
        {"queue_depth": 64},
        {"param_depth": 64},
        {"batch": 2},
    )
    for change in changes:
        assert CoreConfig(**change).digest != digest
    assert CoreConfig().digest32 == int(digest[:8], 16)
