"""Verifies compiled modules and program folders."""

from collections.abc import Iterable

from vitral.program import ProgramFolder
from vitral.runtime.module import ArenaTensor, Module, Segment
from vitral.runtime.packing import arena_shape, packed_bytes
from vitral.verify.image import Image
from vitral.verify.intervals import IntervalSet
from vitral.verify.program import verify_program
from vitral.verify.report import Finding, Report

__all__ = ["check_folder", "check_module", "verify_module"]


def verify_module(module: Module) -> None:
    """Nothing when every program of a module is right.

    Raises
    ------
    VerifyError
        One line with the program, the instruction, and what is wrong with it.
    """
    for report in check_module(module):
        report.raise_for_findings()


def check_module(module: Module) -> list[Report]:
    """A report per program of a module, in order.

    Beyond what `verify_program` finds: outputs that are not stored, and images that a run
    overwrites although the next one needs them.
    """
    written = IntervalSet()
    reports, needs = [], []
    for segment in module.segments:
        given = IntervalSet.of(_places(segment.inputs, module))
        filled = [*_ranges(written), *_ranges(given)]
        launch = segment.launch(0, module.arena_bytes)
        image = Image(module.image, filled)
        report = verify_program(launch, module.config, image, name=segment.name)
        written = written | given | report.writes
        needs.append(report.live_in - given)
        if report.ok:
            report.findings += _unstored_outputs(segment, module, written)
        reports.append(report)
    if all(report.ok for report in reports):
        _check_repeatable(module, reports, needs)
    return reports


def check_folder(folder: ProgramFolder) -> Report:
    """A report on a program folder; all of its memory counts as filled."""
    dram = folder.dram()
    image = Image({dram.base: dram.data})
    return verify_program(folder.launch, folder.config, image, name=folder.name)


def _places(tensors: Iterable[ArenaTensor], module: Module) -> list[tuple[int, int]]:
    return [(tensor.offset, packed_bytes(tensor, module.config)) for tensor in tensors]


def _ranges(intervals: IntervalSet) -> list[tuple[int, int]]:
    starts, ends = intervals.starts.tolist(), intervals.ends.tolist()
    return [(start, end - start) for start, end in zip(starts, ends, strict=True)]


def _unstored_outputs(segment: Segment, module: Module, written: IntervalSet) -> list[Finding]:
    findings = []
    for tensor in segment.outputs:
        groups, blocks, height, width, batch, block = arena_shape(tensor, module.config)
        element = batch * block
        top, left, _, _ = tensor.pads
        rows = [
            (tensor.offset + ((plane * height + top + row) * width + left) * element)
            for plane in range(groups * blocks)
            for row in range(tensor.shape[2])
        ]
        ends = [row + tensor.shape[3] * element for row in rows]
        missing = (~written.covers(rows, ends)).nonzero()[0]
        if missing.size:
            where = rows[int(missing[0])]
            findings.append(
                Finding(None, f"output {tensor.name}: nothing stores its row at {where:#x}")
            )
    return findings


def _check_repeatable(module: Module, reports: list[Report], needs: list[IntervalSet]) -> None:
    """What a run takes from the image must still be there for the next one."""
    changed = IntervalSet()
    for segment, report in zip(module.segments, reports, strict=True):
        changed = changed | IntervalSet.of(_places(segment.inputs, module)) | report.writes
    fresh = IntervalSet()
    for segment, report, need in zip(module.segments, reports, needs, strict=True):
        lost = (need - fresh) & changed
        if lost:
            report.findings.append(
                Finding(
                    None,
                    f"takes bytes at {int(lost.starts[0]):#x} from the image, but the run"
                    " overwrites them: a second run would differ",
                )
            )
        fresh = fresh | report.writes | IntervalSet.of(_places(segment.inputs, module))
