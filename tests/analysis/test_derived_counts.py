"""The finer counts of the instruction mix follow from the source's counts, on every recorded report that has both."""

from __future__ import annotations

from dataclasses import replace

from recorded_data import ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.sections.instruction_mix import InstructionMix, analyse
from gemmprof.model import Source

DERIVABLE = (metrics.EXECUTED_PER_MODIFIER, metrics.THREADS_PER_OPCODE, metrics.THREADS_PER_MODIFIER)


def test_finer_counts_follow_exactly_from_the_counts_per_instruction(
    recorded: ReadRecorded, report_name: str
) -> None:
    compared = 0
    for profile in recorded(report_name, source=True):
        collected = analyse(profile)
        has_all = set(DERIVABLE) | {metrics.INSTRUCTIONS_BY_ADDRESS} <= profile.instances.keys()
        if not isinstance(collected, InstructionMix) or not has_all:
            continue
        without = replace(
            profile,
            instances={name: value for name, value in profile.instances.items() if name not in DERIVABLE},
            metrics={name: value for name, value in profile.metrics.items() if name not in DERIVABLE},
        )
        derived = analyse(without)
        assert isinstance(derived, InstructionMix)
        executed = {item.opcode: (item.executed, item.thread_executed or 0) for item in collected.modifiers}
        assert {item.opcode: (item.executed, item.thread_executed or 0) for item in derived.modifiers} == {
            opcode: counts for opcode, counts in executed.items() if counts[0]
        }
        assert derived.thread_executed == collected.thread_executed
        assert derived.ratios == collected.ratios
        assert derived.missing == collected.missing
        compared += 1
        sourceless = analyse(replace(without, source=Source()))
        assert isinstance(sourceless, InstructionMix) and sourceless.modifiers == ()
        assert sourceless.missing is not None and "SourceCounters" in sourceless.missing.remedy
    if report_name in ("ladder_simple", "flaws_tensor", "flaws_divergence"):
        assert compared >= 3
