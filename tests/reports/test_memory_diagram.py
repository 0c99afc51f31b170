from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from gemmprof.analysis.sections.memory_chart import MemoryChart
from gemmprof.analysis.session import Session
from gemmprof.reports.figures.drawings import Box, Diagram, diagram
from gemmprof.reports.formatting import number, traffic

REPORTS = (
    "ladder_simple",
    "flaws_atomics",
    "flaws_other_memory",
    "flaws_async_copy",
    "flaws_cluster",
    "flaws_spills",
    # Tensor copies have links of their own between shared memory and L2, beside those of L1.
    "wgmma/gemm_4096",
    "wgmma/gemm_4096_fp8",
    "wgmma/hgemm_clusters_half_sectors",
    "wgmma/hgemm_mma_in_turn",
)


def charts(load: Callable[[str], Session]) -> list[MemoryChart]:
    found = [kernel.get(MemoryChart) for name in REPORTS for kernel in load(name).kernels]
    return [chart for chart in found if isinstance(chart, MemoryChart)]


def overlap(a: Box, b: Box) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def ends_on_a_box(drawn: Diagram, x: float, y: float) -> bool:
    return any(x in (box.x, box.x + box.width) and box.y <= y <= box.y + box.height for box in drawn.boxes)


def test_boxes_stand_apart_and_arrows_join_them(load: Callable[[str], Session]) -> None:
    for chart in charts(load):
        drawn = diagram(chart)
        assert drawn.arrows
        assert not any(overlap(a, b) for a, b in combinations(drawn.boxes, 2))
        for arrow in drawn.arrows:
            assert ends_on_a_box(drawn, arrow.start, arrow.y) and ends_on_a_box(drawn, arrow.end, arrow.y)
        assert all(
            box.x + box.width <= drawn.width and box.y + box.height <= drawn.height for box in drawn.boxes
        )


def test_texts_of_arrows_do_not_cover_one_another(load: Callable[[str], Session]) -> None:
    for chart in charts(load):
        places = sorted({(arrow.middle, arrow.y) for arrow in diagram(chart).arrows})
        for (x1, y1), (x2, y2) in combinations(places, 2):
            assert x1 != x2 or abs(y1 - y2) >= 34


def test_every_flow_between_shown_units_is_drawn_with_its_amount(load: Callable[[str], Session]) -> None:
    for chart in charts(load):
        drawn = diagram(chart)
        values = [arrow.value for arrow in drawn.arrows]
        shown = {unit.name for unit in chart.units if unit.title in {box.title for box in drawn.boxes}}
        for link in chart.links:
            if link.source == "kernel" and link.target in shown and link.instructions:
                assert f"{number(link.instructions)} inst" in values
            if {link.source, link.target} == {"l2", "device"} and link.bytes:
                assert traffic(link.bytes) in values


def test_an_idle_memory_stays_out_of_the_picture(load: Callable[[str], Session]) -> None:
    titles = {box.title for box in diagram(charts(load)[0]).boxes}
    assert not titles & {"Texture", "Surface", "Peer memory", "System memory"}
