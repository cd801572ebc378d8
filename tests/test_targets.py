"""The table of targets."""

import pytest

from vitral.config import CoreConfig
from vitral.errors import ConfigError
from vitral.targets import TARGETS, find_target, target_config


def test_modules_of_one_target_run_on_every_other() -> None:
    assert {target.config.digest for target in TARGETS} == {CoreConfig().digest}


def test_names_are_found_and_unknown_ones_listed() -> None:
    assert [find_target(target.name) for target in TARGETS] == list(TARGETS)
    assert target_config("sim") == CoreConfig()
    with pytest.raises(ConfigError, match="no target 'vu9p'; known: sim, pynq-z1"):
        target_config("vu9p")


@pytest.mark.parametrize("name", ["pynq-z1", "pynq-z2", "de10-nano"])
def test_older_ports_take_short_bursts(name: str) -> None:
    config = target_config(name)
    assert (config.data_bits, config.burst_beats, config.addr_bits) == (64, 16, 32)
