"""One question gets one answer, wherever a person asks it; and no section is a head without rows."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import chain

import pytest
from asked import metrics_read
from recorded_data import DATA, ReadRecorded

from gemmprof import metrics
from gemmprof.analysis.comparison.outcome import compare_launches
from gemmprof.analysis.kernel_analysis import KernelAnalysis, analyse, analyses
from gemmprof.analysis.occupancy.of_launch import LaunchOccupancy
from gemmprof.analysis.sections.coalescing import Coalescing
from gemmprof.analysis.sections.instruction_mix import InstructionMix
from gemmprof.analysis.sections.memory_chart import MemoryChart
from gemmprof.analysis.sections.roofline import Roofline
from gemmprof.analysis.sections.speed_of_light import SpeedOfLight
from gemmprof.analysis.session import Session, load_session
from gemmprof.cli import main
from gemmprof.model import KernelProfile, NotCollected
from gemmprof.reports.facts import tiles
from gemmprof.reports.figures.drawings import diagram
from gemmprof.reports.formatting import bandwidth, percent
from gemmprof.reports.pages.contents import KernelPage, plan
from gemmprof.reports.pages.html import Report, kernel_article
from gemmprof.reports.pages.ladder_page import Overview
from gemmprof.reports.terminal.summary import summarise
from gemmprof.runs.directory import load_recorded_run


def article(analysis: KernelAnalysis) -> str:
    session = Session("one launch", (analysis,))
    pages = plan(session)
    return str(kernel_article(Report(session, pages), pages.pages[0]))


def without(profile: KernelProfile, names: Iterable[str]) -> KernelProfile:
    gone = set(names)
    return replace(
        profile, metrics={name: value for name, value in profile.metrics.items() if name not in gone}
    )


def only(profile: KernelProfile, names: Iterable[str]) -> KernelProfile:
    return without(profile, set(profile.metrics) - set(names))


def tile(analysis: KernelAnalysis, name: str) -> str | None:
    found = (words_of(value) for title, value, _ in tiles(KernelPage("k", analysis)) if title == name)
    return next((value.strip() for value in found), None)


def test_a_family_has_one_id_in_explain_and_roofline(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(DATA / "flaws_bank_conflicts.ncu-rep.xz")
    ids = []
    for command in ("explain", "roofline"):
        assert main([command, path, "--json"]) == 0
        kernels = json.loads(capsys.readouterr().out)["kernels"]
        ids.append({part["launch"]: part["family"] for part in kernels})
    assert ids[0] == ids[1] and len(set(ids[0].values())) == 7
    assert main(["roofline", path]) == 0
    assert f"{ids[0][3]} conflict_load<32>" in capsys.readouterr().out


@pytest.mark.parametrize("dropped", [(), (0,), (1,), (0, 1)])
def test_sectors_of_asynchronous_copies_are_one_number(
    dropped: tuple[int, ...], recorded: ReadRecorded
) -> None:
    launch = without(
        recorded("flaws_async_copy")[0], [metrics.ASYNC_COPY_SECTORS[place] for place in dropped]
    )
    analysis = analyse(launch)
    coalescing, chart = analysis.get(Coalescing), analysis.get(MemoryChart)
    assert isinstance(coalescing, Coalescing) and isinstance(chart, MemoryChart)
    copies, link = coalescing.operation("async_copy"), chart.link("global", "l1", "async_copy")
    assert copies is not None and link is not None
    if dropped:
        assert copies.sectors is None and link.bytes is None, "a part of a sum is no sum"
    else:
        assert copies.sectors and link.bytes == 32 * copies.sectors


def words_of(page: str) -> str:
    """The text of a page, tags and runs of blanks as one blank."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


def test_the_bandwidth_of_shared_memory_is_one_number_at_every_door(
    report_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Page, `show`, `roofline`, JSON and chart give ncu's counter, and no link is above its peak."""
    file = str(DATA / f"{report_name}.ncu-rep.xz")
    main(["roofline", file, "--json"])
    points = {
        row["launch"]: point["achieved_bandwidth"]
        for row in json.loads(capsys.readouterr().out)["kernels"]
        for point in row["points"]
        if point["level"] == "shared"
    }
    main(["show", file, "--section", "roofline", "--section", "memory_chart", "--json"])
    shown = {row["launch"]: row["sections"] for row in json.loads(capsys.readouterr().out)["kernels"]}
    for kernel in load_session([file]).kernels:
        profile = kernel.profile
        chart, roofs = kernel.get(MemoryChart), kernel.get(Roofline)
        for link in chart.links if chart else ():
            assert (link.percent_of_peak or 0) <= 100, link
        link = chart.link("shared", "shared_memory") if chart else None
        if link is None or not link.bytes_per_second:
            assert profile.index not in points
            continue
        wavefronts, duration = profile.number(metrics.SHARED_WAVEFRONTS), profile.number(metrics.DURATION)
        assert duration and link.percent_of_peak
        rate = 128 * wavefronts / duration * 1e9 if wavefronts else link.bytes_per_second
        assert link.bytes_per_second == pytest.approx(rate, rel=1e-12)
        page = words_of(article(kernel))
        text = bandwidth(rate)
        if link.bytes:
            assert f"access · {text}" in page
            peak = percent(link.percent_of_peak, 0)
            assert link.percent_of_peak < 0.5 or f"access · {text} · {peak}" in page
        if roofs:
            [roof] = [roof for roof in roofs.memory_roofs if roof.level == "shared"]
            assert roof.achieved == pytest.approx(rate, rel=1e-12)
            assert roof.percent == pytest.approx(link.percent_of_peak, rel=0.02)
        if profile.index in points:
            assert points[profile.index] == pytest.approx(rate, rel=1e-12)
            assert re.search(rf"Shared memory [\d.,]+ [\d.,]+ {re.escape(text)} ", page)
        for name, rows in shown.get(profile.index, {}).items():
            told = {row["name"]: (row["value"], row["remark"]) for row in rows["rows"]}
            if name == "roofline" and roofs:
                assert told["Shared memory"][0] == text
            elif "Shared → Shared memory, access" in told:
                assert told["Shared → Shared memory, access"][1].startswith(f"{text}, ")


@pytest.mark.parametrize("alternating", [True, False])
def test_speed_against_the_yardstick_is_the_same_on_page_and_terminal(alternating: bool) -> None:
    run = load_recorded_run()
    if not alternating:
        run = replace(
            run,
            results=tuple(
                replace(
                    result, timing=replace(result.timing, yardstick_median=None) if result.timing else None
                )
                for result in run.results
            ),
        )
    rows = {(row.stage, row.problem): row.of_cublas for row in summarise(run, None)}
    assert sum(share is not None for share in rows.values()) > 80
    view = Overview(Session("run", (), run), plan(Session("run", (), run)))
    shown = {
        (record.stage.number, cell.result.problem): cell.of_yardstick
        for sizes in view.sizes
        for record, cells in sizes.rows
        for cell in cells
        if cell is not None
    }
    assert shown == rows


def test_the_fastest_stage_is_that_of_the_turns_with_the_yardstick() -> None:
    """A card grows hot: a stage timed minutes later may take longer and still be the faster one."""
    run = load_recorded_run()
    groups = Overview(Session("run", (), run), plan(Session("run", (), run))).groups
    assert len(groups) > 3
    for group in groups:
        rows = [row for row in group.rows if not row.yardstick]
        best = group.fastest
        assert best is not None and best.of_yardstick == max(row.of_yardstick or 0.0 for row in rows)
        if group.story:
            assert best.record.stage.title in group.story
        if len(rows) > 1:
            assert group.gain == pytest.approx((best.tflops or 0.0) / (rows[0].tflops or 1.0))


@pytest.mark.parametrize("name", ["modes_graph", "modes_range"])
def test_no_occupancy_tile_where_the_page_says_not_collected(name: str, recorded: ReadRecorded) -> None:
    analysis = analyse(recorded(name)[0])
    assert isinstance(analysis.get(LaunchOccupancy), NotCollected)
    assert analysis.profile.number(metrics.ACHIEVED_OCCUPANCY) is not None, "ncu stores a mean there"
    assert tile(analysis, "Occupancy") is None


def test_the_gate_and_the_page_compare_the_same_time(ladder: Session) -> None:
    pages = [page for page in plan(ladder).pages if page.timing is not None]
    (_, before, timing), (_, after, later) = ((page.label, page.analysis, page.timing) for page in pages[:2])
    for first in (timing, None):
        time = compare_launches(("before", before, first), ("after", after, later)).time
        assert time is not None and time.name == ("time" if first else "duration")


def test_warps_have_no_bar_without_the_number_of_slots(recorded: ReadRecorded) -> None:
    launch = recorded("ladder_simple")[2]

    def bars(profile: KernelProfile) -> int:
        text = article(analyse(profile))
        section = text[text.index('id="scheduler"') :]
        return section[: section.index("</section>")].count('class="bar"')

    assert bars(launch) == 4
    assert bars(without(launch, [metrics.WARPS_MAX_PER_SCHEDULER])) == 0


def test_occupancy_has_two_digits_everywhere(recorded: ReadRecorded) -> None:
    for launch in recorded("flaws_occupancy"):
        analysis = analyse(launch)
        result = analysis.get(LaunchOccupancy)
        assert isinstance(result, LaunchOccupancy) and result.achieved_percent is not None
        assert tile(analysis, "Occupancy") == f"{result.achieved_percent:.2f} %"
        text = article(analysis)
        assert f"achieved, {result.theoretical_percent:.2f} % possible" in text


def test_the_two_limits_of_barriers_are_told_apart(recorded: ReadRecorded) -> None:
    """The calculator counts barriers alone, 64; ncu no more than an SM has block slots, 32."""
    analysis = analyse(recorded("ladder_simple")[2])
    result = analysis.get(LaunchOccupancy)
    assert isinstance(result, LaunchOccupancy)
    barriers = next(limit for limit in result.block_limits if limit.resource == "barriers")
    assert (barriers.blocks, barriers.alone) == (32, 64)
    assert "64 alone, but an SM has 32 block slots" in article(analysis)


def test_a_rule_without_a_title_is_named_in_words(recorded: ReadRecorded) -> None:
    launch = recorded("flaws_occupancy")[0]
    rule = replace(launch.rules[0], title="", rule="TheoreticalOccupancy", message="Some advice.")
    text = article(analyse(replace(launch, rules=(rule,))))
    assert "Theoretical Occupancy" in text and "TheoreticalOccupancy" not in text


class Rows(HTMLParser):
    """Counts the rows of every table body and the terms of every list, by section."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.empty: list[str] = []
        self.section = ""
        self.count = {"tbody": 0, "dl": 0}
        self.by_script = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "section":
            self.section = attributes.get("id") or ""
        if tag in self.count:
            self.count[tag] = 0
            self.by_script = "data-part" in attributes  # the calculator's rows are the script's
        for inner, outer in (("tr", "tbody"), ("dt", "dl")):
            self.count[outer] += tag == inner

    def handle_endtag(self, tag: str) -> None:
        if tag in self.count and not self.count[tag] and not self.by_script:
            self.empty.append(f"{self.section}: {tag}")


def test_no_section_is_a_head_without_rows(report_name: str, recorded: ReadRecorded) -> None:
    for launch in recorded(report_name, source=True)[:4]:
        assert Rows(article(analyse(launch))).empty == []


@pytest.mark.parametrize("part", ["required", "expected", "others"])
@pytest.mark.parametrize("group", metrics.GROUPS)
def test_no_part_of_a_metric_group_leaves_a_head_without_rows(
    group: str, part: str, recorded: ReadRecorded
) -> None:
    launch = recorded("ladder_simple")[2]
    of = metrics.GROUPS[group]
    if part == "others":
        reads = [metrics_read(one, launch) for one in analyses() if one.GROUP is of]
        names = {*of.of_tables, *chain.from_iterable(reads)} - {*of.required, *of.expected}
    else:
        names = {*getattr(of, part)}
    instances = {name: values for name, values in launch.instances.items() if name in names}
    assert Rows(article(analyse(replace(only(launch, names), instances=instances, rules=())))).empty == []


def test_launch_statistics_alone_have_no_speed_of_light(recorded: ReadRecorded) -> None:
    launch = recorded("ladder_simple")[2]
    names = [name for name in launch.metrics if name.startswith(("launch__", "device__"))]
    text = article(analyse(replace(only(launch, names), instances={}, rules=())))
    assert 'id="speed_of_light"' not in text
    absent = re.sub(r"<[^>]+>", "", text[text.index('id="absent"') :])
    assert "Speed of light" in absent and "--section SpeedOfLight" in absent


def test_a_partial_result_says_how_to_collect_the_rest(recorded: ReadRecorded) -> None:
    text = article(analyse(recorded("partial_two_metrics")[0]))
    section = text[text.index('id="speed_of_light"') :]
    section = re.sub(r"\s+", " ", section[: section.index("</section>")])
    option = '<span class="nowrap">--section</span> SpeedOfLight'  # whole, where a line ends
    assert f"Not all of this was collected. The rest: <code>{option}</code>" in section


def section_of(text: str, name: str) -> str:
    part = text[text.index(f'id="{name}"') :]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", part[: part.index("</section>")]))


@pytest.mark.parametrize("source", [True, False])
def test_registers_set_by_half_instructions_are_no_half_arithmetic(
    source: bool, recorded: ReadRecorded
) -> None:
    fp32, fp64, half, _, special = recorded("flaws_precision", source=source)
    for launch, key in ((fp32, "fp32"), (fp64, "fp64"), (half, "fp16"), (special, "fp32")):
        roofs = analyse(launch).get(Roofline)
        assert isinstance(roofs, Roofline) and roofs.main is not None
        assert {point.compute.key for point in roofs.points} == {key} == {roofs.main.key}
        # What ncu counted stays known.
        seen = next(roof for roof in roofs.compute_roofs if roof.key == "fp16")
        assert seen.achieved and seen.only_constants == (key != "fp16")
    assert "FP16" not in section_of(article(analyse(fp32)), "roofline").replace("The FP16 counters", "")


def test_constants_are_moves_in_the_instruction_mix(recorded: ReadRecorded) -> None:
    launch = recorded("flaws_precision", source=True)[4]
    mix = analyse(launch).get(InstructionMix)
    assert isinstance(mix, InstructionMix)
    assert mix.count("HFMA2") > 0, "ncu's count of the opcode stays"
    assert not any(item.key == "fp16" for item in mix.classes)
    assert sum(item.executed for item in mix.classes) == mix.executed
    assert mix.ratios.fma_share == (mix.count("FFMA")) / mix.executed


@pytest.mark.parametrize(
    ("report", "place", "words"),
    [
        ("flaws_tensor", 0, "HMMA (matrix multiply-add"),
        ("flaws_tensor", 1, "DMMA (matrix multiply-add"),
        ("flaws_precision", 1, "DFMA (fused multiply-add"),
        ("flaws_precision", 3, "the kernel does no floating-point arithmetic"),
    ],
)
def test_each_kernel_is_told_in_its_own_arithmetic(
    report: str, place: int, words: str, recorded: ReadRecorded
) -> None:
    text = section_of(article(analyse(recorded(report, source=True)[place])), "instruction_mix")
    assert words in text and "FFMA per" not in text


def test_the_pipe_that_fp64_and_tensor_share_is_named_for_what_used_it(recorded: ReadRecorded) -> None:
    units = {}
    for report, place in (("flaws_tensor", 2), ("flaws_precision", 1)):
        light = analyse(recorded(report)[place]).get(SpeedOfLight)
        assert isinstance(light, SpeedOfLight)
        entry = next(entry for entry in light.sm_breakdown if "pipe_shared" in entry.metric)
        units[report] = entry.unit
    assert units == {"flaws_tensor": "tensor cores", "flaws_precision": "FP64 pipe"}


def test_a_full_unit_is_red_in_the_memory_chart_and_says_which_part_is(recorded: ReadRecorded) -> None:
    launch = recorded("ladder_simple")[0]
    chart = analyse(launch).get(MemoryChart)
    assert isinstance(chart, MemoryChart)
    l1 = chart.unit("l1")
    assert l1 is not None and (l1.percent_of_peak or 0) > 80
    boxes = {box.title: box.busy for box in diagram(chart).boxes}
    assert boxes["L1/TEX cache"] == 3 and boxes["Kernel"] == 0
    assert l1.busiest.startswith("L1: ") and l1.busiest in article(analyse(launch))
