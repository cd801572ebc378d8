"""The profile of a run: every layer has its cycles, and the sums and shares are possible."""

from collections.abc import Collection, Iterator

import numpy as np
import pytest
from digits import INT8_MODEL, load_images, model_input
from e2e.compiled import case_named, compiled

import vitral
from vitral.program import Launch, MemoryModel, Outcome
from vitral.runtime.devices.tsim import TsimDevice
from vitral.runtime.profile import LayerProfile

FEEDS = {"image": model_input(load_images("demo").pixels[0])}


@pytest.fixture(scope="module")
def digits() -> vitral.Module:
    return vitral.compile(INT8_MODEL)


@pytest.fixture(scope="module")
def session(digits: vitral.Module) -> Iterator[vitral.Session]:
    with vitral.Session(digits, device="tsim") as opened:
        opened.run(None, FEEDS)
        yield opened


def accelerated(session: vitral.Session) -> list[LayerProfile]:
    return [layer for layer in session.profile() if layer.device != "cpu"]


def test_layers_and_steps_in_the_order_of_execution(session: vitral.Session) -> None:
    names = [layer.name for layer in session.profile() if layer.op != "patches"]
    convs = ["conv1", "conv2", "conv3", "conv4", "conv5"]
    assert [name for name in names if name in convs] == convs
    products = [layer.name for layer in accelerated(session) if layer.macs]
    assert products == [*convs, "logits"]


def test_every_layer_has_cycles_that_add_up(session: vitral.Session) -> None:
    """Also where one program has several layers."""
    assert max(len(segment.layers) for segment in session.module.segments) >= 3
    layers = iter(accelerated(session))
    for segment, outcome in zip(session.module.segments, session.outcomes(), strict=True):
        cycles = [next(layers).cycles for _ in segment.layers]
        assert all(count is not None and count > 0 for count in cycles), segment.name
        assert sum(count or 0 for count in cycles) == outcome.cycles


def test_no_layer_beats_its_roofline(session: vitral.Session) -> None:
    """Macs over array size bounds a layer; what it moves may overlap with its neighbours."""
    for layer in accelerated(session):
        assert layer.cycles is not None
        assert layer.roofline_cycles is not None
        assert layer.cycles >= 0.95 * layer.macs / 256, layer.name
    for outcome, segment in zip(session.outcomes(), session.module.segments, strict=True):
        assert (outcome.cycles or 0) >= sum(layer.macs for layer in segment.layers) / 256


def test_utilisation_is_macs_per_cycle_of_the_array(session: vitral.Session) -> None:
    for layer in accelerated(session):
        assert layer.cycles is not None
        assert layer.utilisation == pytest.approx(layer.macs / (256 * layer.cycles))
        assert (layer.utilisation or 0) < 1.05
    by_name = {layer.name: layer for layer in accelerated(session)}
    assert (by_name["conv3"].utilisation or 0) > (by_name["conv1"].utilisation or 0)
    assert (by_name["conv3"].utilisation or 0) > 0.5


def test_gemm_counter_covers_the_products(session: vitral.Session) -> None:
    """A tile product makes 256 at most; padding channels are made for nothing."""
    for segment, outcome in zip(session.module.segments, session.outcomes(), strict=True):
        macs = sum(layer.macs for layer in segment.layers)
        assert macs / 256 <= outcome.counters["gemm"] <= (outcome.cycles or 0)


def test_bytes_moved(session: vitral.Session) -> None:
    """At least what the layers need; written whole blocks of channels, once."""
    for segment, outcome in zip(session.module.segments, session.outcomes(), strict=True):
        needed = sum(layer.read_bytes for layer in segment.layers)
        written = outcome.counters["write_beats"] * 8
        assert outcome.counters["read_beats"] * 8 >= needed > 0
        blocks = sum(layer.write_bytes for layer in segment.layers)
        assert blocks <= written <= 1.02 * blocks + 16 * 16


def test_stalls_are_within_the_cycles(session: vitral.Session) -> None:
    for outcome in session.outcomes():
        for stage in ("load", "compute", "store"):
            counted = [n for name, n in outcome.counters.items() if name.startswith(f"{stage}_")]
            assert sum(counted) == outcome.cycles


def test_layers_split_what_the_core_counted(session: vitral.Session) -> None:
    """Of every stage and cause, and of the beats; each stage's cycles are the layer's."""
    layers = iter(accelerated(session))
    for segment, outcome in zip(session.module.segments, session.outcomes(), strict=True):
        parts = [next(layers) for _ in segment.layers]
        for name in parts[0].counters:
            assert sum(part.counters[name] for part in parts) == outcome.counters[name], name
        for part in parts:
            for stage in ("load", "compute", "store"):
                counted = [n for name, n in part.counters.items() if name.startswith(f"{stage}_")]
                assert len(counted) == 6
                assert sum(counted) == part.cycles, f"{part.name}, {stage}"


def test_sums_cover_the_model(session: vitral.Session) -> None:
    module = session.module
    copies = [entry for entry in session.profile() if entry.direction]
    kernels = [entry for entry in session.profile() if not entry.direction]
    assert sum(layer.macs for layer in kernels) == module.macs
    assert len(kernels) == len(module.steps) - len(module.segments) + sum(
        len(segment.layers) for segment in module.segments
    )
    assert [entry.name for entry in copies] == [
        tensor.name for segment in module.segments for tensor in (*segment.inputs, *segment.outputs)
    ]
    assert all(entry.seconds >= 0 for entry in session.profile())
    assert sum(layer.seconds for layer in accelerated(session)) > 0


class Unwatched(TsimDevice):
    """Nobody looks where its core is."""

    def run(
        self, launch: Launch, *, timeout: float | None = None, marks: Collection[int] = ()
    ) -> Outcome:
        return super().run(launch, timeout=timeout)


def test_looking_at_layers_costs_no_cycles(session: vitral.Session) -> None:
    watched = [outcome.cycles for outcome in session.outcomes()]
    device = Unwatched(session.module.config)
    with vitral.Session(session.module, device=device) as unwatched:
        unwatched.run(None, FEEDS)
        assert [outcome.cycles for outcome in unwatched.outcomes()] == watched
        assert {layer.cycles for layer in accelerated(unwatched)[1:4]} == {None}


@pytest.mark.parametrize("device", ["fsim", "reference"])
def test_devices_without_a_clock_give_none(device: str) -> None:
    case = case_named("V2")
    with vitral.Session(compiled("V2", "qdq"), device=device) as session:
        session.run(None, {"x": case.x})
        (layer,) = session.profile()
    assert (layer.cycles, layer.utilisation) == (None, None)
    assert (layer.macs, layer.device) == (case.macs, device)
    assert (layer.roofline_cycles or 0) >= -(-case.macs // 256)


def test_slower_memory_shows_in_the_layers_that_wait_for_it(digits: vitral.Module) -> None:
    cycles = []
    for latency in (16, 300):
        model = MemoryModel(latency=latency, write_latency=latency)
        with vitral.Session(digits, device="tsim", memory_model=model) as session:
            session.run(None, FEEDS)
            cycles.append({layer.name: layer.cycles or 0 for layer in accelerated(session)})
    assert cycles[1]["logits"] > 1.5 * cycles[0]["logits"]
    assert np.mean(list(cycles[1].values())) > np.mean(list(cycles[0].values()))
