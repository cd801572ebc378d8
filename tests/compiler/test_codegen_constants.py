"""Packed weights and parameters, and the taps that GEMMs visit."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from convs import conv_layer, random_layer, small_configs

from vitral.compiler.codegen.constants import pack_params, pack_weights
from vitral.compiler.codegen.gemm import gemm_calls
from vitral.compiler.schedule.geometry import Geometry
from vitral.compiler.schedule.plan import plan_layers
from vitral.compiler.schedule.steps import Step
from vitral.compiler.schedule.trial import trial_cycles
from vitral.compiler.schedule.unroll import task_chunks
from vitral.config import CoreConfig
from vitral.errors import CompileError
from vitral.isa import PARAM_FIELDS, Gemm

SMALL = small_configs()["block4"]


@pytest.mark.parametrize("seed", range(12))
def test_packed_planes_add_up_to_the_weights(seed: int) -> None:
    layer = random_layer(np.random.default_rng(seed))
    (plan,) = plan_layers([layer], SMALL, trial_cycles)
    geometry = plan.geometry
    assert isinstance(geometry, Geometry)
    chunks = [task_chunks(geometry, plan.tiling, task) for task in geometry.tasks]
    packed = iter(pack_weights(layer, geometry, chunks, SMALL).astype(np.int64))
    outs, ins = layer.weight.shape[0] // layer.group, layer.weight.shape[1]
    found = np.zeros((outs * layer.group + 4, ins * layer.group + 4, *layer.weight.shape[2:]), int)
    for task, pieces in zip(geometry.tasks, chunks, strict=True):
        for o in range(task.outs):
            for piece in pieces:
                for i, ky, kx in np.ndindex(piece.ins[1], piece.taps[1], geometry.x.kernel):
                    out, inp = (task.first_out + o) * 4, (task.first_in + piece.ins[0] + i) * 4
                    total = np.sum([next(packed) for _ in range(geometry.planes)], axis=0)
                    room = found[out : out + 4, inp : inp + 4, piece.taps[0] + ky, kx]
                    room += total[: room.shape[0], : room.shape[1]]
    assert next(packed, None) is None
    wanted = np.zeros_like(found)
    for group in range(layer.group):
        o, i = group * outs, group * ins
        wanted[o : o + outs, i : i + ins] = layer.weight[o : o + outs]
    np.testing.assert_array_equal(found, wanted, err_msg=f"seed {seed}")


@pytest.mark.parametrize(
    ("low", "high", "planes"),
    [(0, 0, 1), (-128, 127, 1), (-129, 0, 2), (0, 128, 2), (-255, 254, 2), (0, 255, 3)],
)
def test_number_of_weight_planes(low: int, high: int, planes: int) -> None:
    layer = conv_layer(np.random.default_rng(0), shape=(1, 2, 1, 1), outs=1)
    weight = np.array([low, high], np.int16).reshape(1, 2, 1, 1)
    assert Geometry.of(replace(layer, weight=weight), SMALL).planes == planes


def test_parameters_of_channels_that_do_not_exist_give_zero() -> None:
    layer = conv_layer(np.random.default_rng(3), shape=(1, 2, 1, 1), outs=6)
    lanes = pack_params(layer, SMALL)
    assert lanes.shape == (2, 4, 16)
    for channel in range(8):
        word = int.from_bytes(lanes[channel // 4, channel % 4].tobytes(), "little")
        for field in PARAM_FIELDS:
            values = getattr(layer.params, field.name)
            wanted = int(values[channel]) if channel < 6 else 0
            assert field.extract(word) == wanted, (channel, field.name)


def test_parameters_of_another_length_are_refused() -> None:
    layer = conv_layer(np.random.default_rng(3), shape=(1, 2, 1, 1), outs=6)
    params = replace(layer.params, bias=np.zeros(5, np.int32))
    with pytest.raises(CompileError, match=r"conv: bias needs one value .* \(6,\), got \(5,\)"):
        pack_params(replace(layer, params=params), SMALL)


def _visited(step: Step, geometry: Geometry, config: CoreConfig) -> Iterator[tuple[int, int, int]]:
    """(dst, src, wgt) of every product of a step, in order."""
    for call in gemm_calls(step, geometry, config.layout.uop_depth):
        insn = call.with_uops(0)
        assert isinstance(insn, Gemm)
        assert insn.uop_end - insn.uop_bgn <= config.layout.uop_depth
        for i, j in np.ndindex(insn.iter_out, insn.iter_in):
            for uop in call.uops[call.begin : call.end]:
                dst = uop.dst + i * insn.dst_factor_out + j * insn.dst_factor_in
                src = uop.src + i * insn.src_factor_out + j * insn.src_factor_in
                wgt = uop.wgt + i * insn.wgt_factor_out + j * insn.wgt_factor_in
                assert call.acc.start <= dst < call.acc.stop
                assert call.inp.start <= src < call.inp.stop
                assert call.wgt.start <= wgt < call.wgt.stop
                yield dst, src, wgt


def _wanted(step: Step, geometry: Geometry) -> Iterator[tuple[int, int, int]]:
    chunk, (rows, cols) = step.input, (step.tile.rows[1], step.tile.cols[1])
    kernel = step.chunk.taps[1], geometry.x.kernel, geometry.planes
    for row, col in np.ndindex(rows, cols):
        for n, (i, ky, kx, _) in enumerate(np.ndindex(chunk.ins[1], *kernel)):
            y = (row * geometry.y.stride + ky * geometry.y.dilation) // chunk.step
            x = col * geometry.x.stride + kx * geometry.x.dilation
            src = chunk.base + i * chunk.plane
            src += (chunk.rows.skip + y) * chunk.pitch + chunk.cols.skip + x
            yield step.acc + row * cols + col, src, step.weight.base + n


@pytest.mark.parametrize("config", small_configs().values(), ids=small_configs())
@pytest.mark.parametrize("seed", range(6))
def test_gemms_visit_every_tap_of_every_output_once(seed: int, config: CoreConfig) -> None:
    layer = random_layer(np.random.default_rng(seed), largest=8)
    (plan,) = plan_layers([layer], config, trial_cycles)
    geometry = plan.geometry
    assert isinstance(geometry, Geometry)
    for step in plan.steps[:20]:
        visited = list(_visited(step, geometry, config))
        assert sorted(visited) == sorted(_wanted(step, geometry)), f"seed {seed}: {step}"
        calls = gemm_calls(step, geometry, config.layout.uop_depth)
        overwriting = [isinstance(c.insn, Gemm) and c.insn.overwrite for c in calls]
        assert overwriting == [step.first] + [False] * (len(calls) - 1)
        firsts = [dst for dst, _, _ in visited][: step.tile.positions]
        assert not step.first or len(set(firsts)) == len(firsts)
