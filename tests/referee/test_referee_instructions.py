"""The instruction mix adds up, and our classes sort the opcodes as ncu's own categories do."""

from __future__ import annotations

from collections import Counter

from recorded_data import ReadRecorded

from gemmprof.analysis import kernel_analysis
from gemmprof.analysis.sections.instruction_mix import InstructionMix, OpcodeCount

CATEGORY_OF_CLASS = {
    "tensor": "Floating Point",
    "fp32": "Floating Point",
    "fp64": "Floating Point",
    "fp16": "Floating Point",
    "special": "Floating Point",
    "integer": "Integer",
    "conversion": "Conversion",
    "move": "Movement",
    "uniform": "Uniform Datapath",
    "texture": "Texture",
    "control": "Control",
    "synchronisation": "Miscellaneous",
    "warp": "Movement",
    "other": "Miscellaneous",
}
"""Every other class is "Load/Store" to ncu."""

CATEGORY_OF_OPCODE = {
    "BMOV": "Control",
    "CGAERRBAR": "Control",
    "CS2R": "Miscellaneous",
    "NANOSLEEP": "Control",
    "P2R": "Predicate",
    "PLOP3": "Predicate",
    "R2P": "Predicate",
    "S2R": "Miscellaneous",
    "UCGABAR_ARV": "Uniform Datapath",
    "UCGABAR_WAIT": "Uniform Datapath",
    "ULDC": "Uniform Datapath",
    "VOTE": "Miscellaneous",
    "WARPSYNC": "Control",
}
"""Opcodes that we sort by what they are for, ncu by its instruction tables."""


def _category(item: OpcodeCount) -> str:
    return CATEGORY_OF_OPCODE.get(item.opcode) or CATEGORY_OF_CLASS.get(item.instruction_class, "Load/Store")


def test_categories(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        mix = kernel_analysis.analyse(profile).get(InstructionMix)
        if not mix or not mix.categories:
            continue
        ours: Counter[str] = Counter()
        for item in mix.opcodes:
            ours[_category(item)] += item.executed
        assert ours == Counter(dict(mix.categories)), profile.name


def test_every_sum_agrees(recorded: ReadRecorded, report_name: str) -> None:
    for profile in recorded(report_name):
        mix = kernel_analysis.analyse(profile).get(InstructionMix)
        if not mix:
            continue
        assert sum(item.executed for item in mix.modifiers) == mix.executed
        assert sum(item.executed for item in mix.classes) == mix.executed
        assert sum(item.thread_executed or 0 for item in mix.modifiers) == mix.thread_executed
        assert profile.metrics["inst_executed"] == mix.executed
        assert profile.metrics["thread_inst_executed_true"] == mix.thread_executed
        if "cas" not in profile.function_name:
            assert mix.executed_counter == mix.executed
        assert all(item.meaning for item in mix.opcodes), "an opcode is missing in the table"


def test_opcodes_are_the_modifiers_without_their_dots(recorded: ReadRecorded) -> None:
    for profile in recorded("flaws_tensor"):
        mix = kernel_analysis.analyse(profile).get(InstructionMix)
        assert mix
        summed: Counter[str] = Counter()
        for item in mix.modifiers:
            summed[item.opcode.partition(".")[0]] += item.executed
        assert summed == Counter({item.opcode: item.executed for item in mix.opcodes})
