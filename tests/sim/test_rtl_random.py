"""The RTL against the reference: random programs on cores of all block sizes.

Whole on-chip memories, whole DRAM with its guard pages, and status are compared, on memories
with random latency, B delays and back-pressure.
"""

from collections import Counter
from collections.abc import Callable

import pytest
from programs import CONFIGS, generate
from programs.coverage import COVERAGE, missing, table
from programs.trials import LONG, trials

from vitral.sim.rtl import RtlSimulator

CORES = {
    "block4": "block 4, 64 bits",
    "batch2": "batch 2, block 8, 128 bits",
    "default": "block 16, 64 bits",
    "block32": "block 32, 64 bits, bursts of up to 256 beats",
}
PER_CORE = 70
BAD = 14
LEAST = 20
"""Times that every kind of instruction has to come up on all cores together."""


def seeds_of(name: str) -> range:
    first = list(CORES).index(name) * PER_CORE
    return range(first, first + PER_CORE)


@pytest.mark.parametrize("name", CORES)
def test_random_programs_and_memories(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    config = CONFIGS[name]
    found, insns, count = [], 0, 0
    with RtlSimulator(config) as core:
        for trial in trials(config, seeds_of(name), bad=BAD, long_every=1):
            failure = trial.failure(core)
            if failure:
                found.append(f"{failure}\n{trial.program.text}")
            insns += len(trial.program.words)
            count += 1
    assert found == [], f"{len(found)} of {count} programs; the first one:\n{found[0]}"
    assert count > PER_CORE + BAD // 2
    record_property("note", f"tsim = reference: {count} programs, {insns} instructions, {name}")


def test_these_programs_cover_everything(record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    for name in CORES:
        for seed in seeds_of(name):
            program = generate(seed, CONFIGS[name], length=LONG)
            counts += program.coverage
    print(table(counts))
    assert missing(counts, LEAST) == []
    rarest = min(COVERAGE, key=lambda key: counts[key])
    record_property(
        "note", f"{len(COVERAGE)} kinds of instructions and tokens, {rarest} {counts[rarest]} times"
    )
