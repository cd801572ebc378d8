"""Runs a fixed set of random programs on a woven core, one mutant after the other."""

from collections.abc import Iterator, Sequence

from programs.trials import Trial

from mutants.mutant import Mutant
from mutants.weave import mutated_verilog, selector
from vitral.config import CoreConfig
from vitral.sim.rtl import RtlSimulator

__all__ = ["Hunt"]


class Hunt:
    """A woven core and a set of trials.

    Parameters
    ----------
    config : CoreConfig
        Of the core.
    mutants : sequence of Mutant
        All that the core can become.
    trials : sequence of Trial
        The programs, for cores of that configuration.
    """

    def __init__(
        self, config: CoreConfig, mutants: Sequence[Mutant], trials: Sequence[Trial]
    ) -> None:
        self.mutants = tuple(mutants)
        self.trials = tuple(trials)
        self.core = RtlSimulator(config, verilog=mutated_verilog(config, mutants))

    def __enter__(self) -> "Hunt":
        return self

    def __exit__(self, *error: object) -> None:
        self.core.close()

    def failures(self, mutant: Mutant | None) -> Iterator[str]:
        """What each program finds that notices something, on the core as `mutant`.

        None is the core as it is.
        """
        number = 0 if mutant is None else self.mutants.index(mutant) + 1
        selector(self.core.arrays)[0] = number
        self.core.reset()
        for trial in self.trials:
            found = trial.failure(self.core)
            if found:
                yield found
