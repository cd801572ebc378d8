"""The cycle model against the RTL's recorded cycles, and its parts against hand-made cases."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from convs import (
    chain,
    compile_layers,
    network,
    random_add,
    random_depthwise,
    random_layer,
    random_pool,
)
from engines import engine

from vitral.bench.layers import RESNET18
from vitral.bench.networks import compile_network
from vitral.bench.workload import compile_layer, make_layer, make_workload
from vitral.compiler.cycles import Prediction, predict, predict_segment
from vitral.compiler.cycles.bursts import transfer
from vitral.compiler.cycles.compute import elements_of
from vitral.compiler.cycles.padding import PadFiller, runs_of
from vitral.compiler.cycles.reads import NEVER, ReadChannel, ReadClient
from vitral.compiler.cycles.timing import CORE
from vitral.compiler.cycles.writes import WriteChannel
from vitral.compiler.schedule.layer import AccelLayer
from vitral.config import INSN_BYTES, CoreConfig
from vitral.errors import CompileError
from vitral.isa import (
    Config,
    ConfigRegister,
    Finish,
    Gemm,
    Instruction,
    InstructionSet,
    Load,
    Memory,
    Stage,
    Window,
    window_value,
)
from vitral.program import Dram, Launch, MemoryModel, OnChip, Outcome, ProgramFolder
from vitral.runtime.module import Module

CONFIG = CoreConfig()
DATA = Path(__file__).parents[1]
RECORDED = json.loads((DATA / "e2e" / "data" / "cycles.json").read_text())["cycles"]
GOLDEN = sorted(path.parent.name for path in (DATA / "data" / "golden").glob("*/instructions.bin"))
ALLOWED = 0.03


def _instructions(module: Module) -> list[Instruction]:
    (segment,) = module.segments
    raw = np.asarray(module.image[segment.insn_offset]).tobytes()
    return _decode(raw[: segment.insn_count * INSN_BYTES])


def _decode(raw: bytes) -> list[Instruction]:
    isa = InstructionSet.of(CONFIG)
    words = (raw[n : n + INSN_BYTES] for n in range(0, len(raw), INSN_BYTES))
    return [isa.decode(int.from_bytes(word, "little")) for word in words]


@pytest.mark.parametrize("name", RESNET18)
def test_layers_are_within_three_percent_of_the_rtl(name: str) -> None:
    module = compile_layer(make_layer(name, RESNET18[name], np.random.default_rng(0)), CONFIG)
    predicted = predict(_instructions(module), CONFIG).cycles
    assert abs(predicted / RECORDED[name] - 1) < ALLOWED, f"{predicted}, RTL {RECORDED[name]}"


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_programs_are_within_three_percent_of_the_rtl(name: str) -> None:
    folder = ProgramFolder.load(DATA / "data" / "golden" / name)
    launch = folder.launch
    raw = bytes(folder.dram().read(launch.insn_base, INSN_BYTES * launch.insn_count))
    predicted = predict(_decode(raw), CONFIG, bases=launch.bases).cycles
    assert abs(predicted / RECORDED[name] - 1) < ALLOWED, f"{predicted}, RTL {RECORDED[name]}"


@pytest.mark.parametrize(
    "name",
    [
        *("c1", "resnet8", "ds-cnn"),
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("resnet18", "mobilenetv1")),
        pytest.param("tiny-yolov2", marks=pytest.mark.slow),
    ],
)
def test_networks_are_within_three_percent_of_the_rtl(name: str) -> None:
    module = compile_network(name, CONFIG).module
    predicted = sum(predict_segment(module, segment).cycles for segment in module.segments)
    assert abs(predicted / RECORDED[name] - 1) < ALLOWED, f"{predicted}, RTL {RECORDED[name]}"


def _convolutions(rng: np.random.Generator) -> list[AccelLayer]:
    return [*chain(rng, random_layer(rng, largest=16), 3)]


MAKERS: dict[str, Callable[[np.random.Generator], list[AccelLayer]]] = {
    "convolutions": _convolutions,
    "depthwise": lambda rng: [random_depthwise(rng, largest=24)],
    "pool": lambda rng: [random_pool(rng, largest=24)],
    "add": lambda rng: [random_add(rng, largest=24)],
    "network": lambda rng: network(rng, channels=40, size=14),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", MAKERS)
def test_random_layers_are_close_to_the_rtl(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    layers = MAKERS[kind](rng)
    compiled = compile_layers(layers, CONFIG, (layers[-1].result,))
    outcomes: list[Outcome] = []

    def run(launch: Launch, dram: Dram, onchip: OnChip) -> Outcome:
        outcomes.append(engine("tsim", CONFIG).run(launch, dram, onchip=onchip))
        return outcomes[-1]

    inputs = {
        tensor.name: rng.integers(-128, 128, tensor.shape).astype(np.int8)
        for tensor in compiled.segment.inputs
    }
    compiled.run(run, inputs, seed)
    counted = outcomes[0].cycles
    predicted = predict(compiled.instructions, CONFIG, bases=compiled.launch.bases).cycles
    assert counted is not None
    assert abs(predicted / counted - 1) < ALLOWED, f"{predicted}, RTL {counted}"


def _run(*insns: Instruction, memory: MemoryModel | None = None) -> Prediction:
    return predict([*insns, Finish()], CONFIG, memory=memory)


def test_a_missing_token_is_an_error() -> None:
    with pytest.raises(CompileError, match="cannot end"):
        _run(Gemm(pop_prev=True))


def test_element_operations_take_a_cycle_each() -> None:
    def gemm(rounds: int) -> Gemm:
        return Gemm(uop_end=3, iter_out=rounds, iter_in=7)

    assert elements_of(gemm(5)) == 105
    one, two = _run(gemm(5)), _run(gemm(6))
    assert two.cycles - one.cycles == 21
    assert (one.operations, two.operations) == (105, 126)
    assert _run(gemm(5), gemm(6)).operations == 231


def test_a_new_window_waits_for_the_last_element() -> None:
    stage, number = divmod(ConfigRegister.WINDOW, 128)
    config = Config(stage=Stage(stage), register=number, value=window_value(3, 1))
    window = Window(uop_end=1, iter_out=1, iter_in=100)
    together, apart = _run(window, window), _run(window, config, window)
    assert apart.operations == together.operations == 200
    assert 0 < apart.cycles - together.cycles < 8


def test_latency_counts_once_for_data_in_one_stream() -> None:
    load = Load(memory=Memory.WGT, y_size=1, x_size=512, x_stride=512)
    quick, slow = (_run(load, memory=MemoryModel(latency=n)) for n in (32, 64))
    assert quick.read_beats == slow.read_beats == 512 * 32 + 2 * 2
    assert slow.cycles - quick.cycles == 2 * 32, "of the program and of the data"


@pytest.mark.parametrize(
    ("address", "row", "stride", "rows", "bursts"),
    [
        (0, 128, 128, 3, (16, 16, 16)),
        (0, 128, 256, 2, (16, 16)),
        (0, 136, 256, 2, (16, 1, 16, 1)),
        (8, 128, 128, 1, (16,)),
        (4096 - 24, 64, 64, 1, (3, 5)),
        (12, 8, 8, 1, (2,)),
    ],
)
def test_bursts(address: int, row: int, stride: int, rows: int, bursts: tuple[int, ...]) -> None:
    assert transfer(address, row, stride, rows, True, CONFIG).bursts == bursts


def test_padded_rows_are_not_joined() -> None:
    moved = transfer(0, 64, 64, 3, False, CONFIG)
    assert (moved.bursts, moved.before_last) == ((8, 8, 8), 2)


def test_short_bursts_wait_for_the_outstanding_ones() -> None:
    channel = ReadChannel(CONFIG, MemoryModel())
    data: list[tuple[int, int]] = []
    addresses = channel.grant(10, (1,) * 9, data=data)
    assert addresses == [10, 11, 12, 13, 14, 15, 16, 17, 75]
    assert [start for start, _ in data] == [n + 64 for n in addresses]


class _Client:
    """Asks for bursts of 16 beats, at most so many, from cycle 0 on."""

    def __init__(self, name: str, bursts: int, log: list[str], insists: int = 0) -> None:
        self.request = 0
        self.insists = insists
        self._name, self._left, self._log = name, bursts, log

    def issue(self, channel: ReadChannel, until: int) -> None:
        sent = len(channel.grant(self.request, (16,) * self._left, until))
        self._log.extend(self._name * sent)
        self._left -= sent
        if not self._left:
            self.request = NEVER


@pytest.mark.parametrize(
    ("insists", "order"), [(0, "babababa"), (3, "bbababaa"), (NEVER, "bbbbaaaa")]
)
def test_clients_take_turns_unless_one_defers(insists: int, order: str) -> None:
    log: list[str] = []
    clients: list[ReadClient] = [_Client("a", 4, log, insists), _Client("b", 4, log)]
    channel = ReadChannel(CONFIG, MemoryModel())
    while channel.serve(clients):
        pass
    assert "".join(log) == order


def test_long_bursts_leave_no_gap() -> None:
    channel = ReadChannel(CONFIG, MemoryModel())
    data: list[tuple[int, int]] = []
    channel.grant(0, (16,) * 40, data=data)
    assert data[-1][1] - data[0][0] == 16 * 40 - 1


def test_padding_waits_for_cycles_without_data() -> None:
    runs = runs_of(Load(memory=Memory.INP, y_size=2, x_size=3, x_stride=3, y_pad_0=1, x_pad_1=2))
    assert runs == ((1, 5), (1, 0), (1, 2), (1, 2), (0, 5))
    free, busy = PadFiller(), PadFiller()
    assert free.fill(10, runs) == 10 + (1 + 5) + 1 + (1 + 2) + (1 + 2) + 1
    busy.occupy([(12, 99)])  # after the first run's own cycle
    assert busy.fill(10, runs) == 99 + 5 + 1 + (1 + 2) + (1 + 2) + 1
    busy.commit()
    assert busy.fill(10, ((0, 5),)) > 99 + 5 + 1 + (1 + 2) + (1 + 2) + 1


def test_write_bursts_wait_for_acknowledgements() -> None:
    channel = WriteChannel(CONFIG, MemoryModel(), CORE)
    _, end, ack = channel.send((1,) * 8, 0, 20, 0)
    assert (end, ack) == (27, 27 + 64)
    _, end, _ = channel.send((1,), 28, 28, 0)
    assert end == 20 + 64 + CORE.ack_to_burst + CORE.address_to_data


def test_fewer_lanes_of_the_requantiser_hold_up_the_stores() -> None:
    shape = RESNET18["c4"]
    elements = shape.outputs // 16 * shape.out_size**2
    cycles = [_predicted_alone("c4", CoreConfig(requant_lanes=lanes)) for lanes in (8, 4, 2, 1)]
    assert cycles[0] < cycles[1] < cycles[2] < cycles[3]
    for lanes, predicted in zip((2, 1), cycles[2:], strict=True):
        assert elements * 16 // lanes < predicted < 1.05 * elements * 16 // lanes


def _predicted_alone(name: str, config: CoreConfig) -> int:
    module = make_workload(name, RESNET18[name], config).module
    (segment,) = module.segments
    return predict_segment(module, segment).cycles
