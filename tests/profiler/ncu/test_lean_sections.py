"""Sections less what the lean set leaves out: the rest stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmprof import metrics
from gemmprof.gpu.devices import Tool
from gemmprof.profiler.ncu.command import Collecting, section_folder, without_metrics, write_lean_sections

SECTION = """Identifier: "Example"
Metrics {
  Metrics {
    Label: "Dear"
    Name: "dear__metric.sum"
    Filter {
      Items {
        MinArch: CC_80
      }
    }
  }
  Metrics {
    Label: "Cheap"
    Name: "cheap__metric.sum"
  }
}
Body {
  DisplayName: "Tables"
  Items {
    MemorySharedTable {
      Label: "Shared Memory"
    }
  }
  Items {
    MemoryL2CacheTable {
      Label: "L2 Cache"
    }
    Filter {
      MinArch: 80
    }
  }
}
"""


def words(text: str) -> list[str]:
    return text.split()


def test_the_block_of_a_metric_goes_with_all_that_is_in_it() -> None:
    lean = without_metrics(SECTION, ["dear__"])
    dear = '  Metrics {\n    Label: "Dear"'
    start = SECTION.index(dear)
    end = SECTION.index('  Metrics {\n    Label: "Cheap"')
    assert words(lean) == words(SECTION[:start] + SECTION[end:])


def test_a_table_goes_with_its_filter_and_its_neighbour_stays() -> None:
    lean = without_metrics(SECTION, ["MemoryL2CacheTable"])
    assert "MemoryL2CacheTable" not in lean and "MinArch: 80" not in lean
    assert "MemorySharedTable" in lean
    assert lean.count("{") == lean.count("}")


@pytest.mark.parametrize("name", ["Example", "Tables", "no_such"])
def test_what_is_no_metric_and_no_table_stays(name: str) -> None:
    assert without_metrics(SECTION, [name]) == SECTION


def test_a_name_outside_of_any_block_stays() -> None:
    assert without_metrics('Name: "dear__metric.sum"', ["dear__"]) == 'Name: "dear__metric.sum"'
    unclosed = 'Metrics { Name: "dear__metric.sum"'
    assert without_metrics(unclosed, ["dear__"]) == unclosed


def test_the_folder_holds_rules_charts_and_every_section(tmp_path: Path) -> None:
    installed, folder = tmp_path / "installed", tmp_path / "lean"
    installed.mkdir()
    folder.mkdir()
    (installed / "Example.section").write_text(SECTION)
    (installed / "Other.section").write_text('Identifier: "Other"\n')
    (installed / "Rule.py").write_text("rule = 1\n")
    (installed / "Rule.chart").write_bytes(b"\x00\xff")
    assert write_lean_sections(installed, folder, ["dear__"])
    assert {path.name for path in folder.iterdir()} == {path.name for path in installed.iterdir()}
    assert "dear__" not in (folder / "Example.section").read_text()
    for name in ("Other.section", "Rule.py", "Rule.chart"):
        assert (folder / name).read_bytes() == (installed / name).read_bytes()
    assert not write_lean_sections(installed, folder, ["no_such"])


def test_an_installation_without_sections_leaves_nothing_to_use(tmp_path: Path) -> None:
    assert not write_lean_sections(tmp_path / "absent", tmp_path, metrics.LEAN_WITHOUT)


def test_what_is_left_out_is_not_asked_for_by_name_and_no_analysis_requires_it() -> None:
    names = metrics.collection_options(tensor=False)[-1].split(",")
    assert not [name for name in names if name.startswith(metrics.LEAN_WITHOUT)]
    for group in metrics.GROUPS.values():
        read = (*group.required, *group.expected)
        assert not [name for name in read if name.startswith(metrics.LEAN_WITHOUT)]


def test_what_the_left_out_tables_hold_for_the_analyses_is_asked_for_by_name() -> None:
    names = metrics.collection_options(tensor=False)[-1].split(",")
    for group in (
        metrics.GROUPS["bank_conflicts"],
        metrics.GROUPS["coalescing"],
        metrics.GROUPS["memory_chart"],
    ):
        assert set(group.required) <= set(names)
    assert metrics.GLOBAL_HIT_RATE_OF["load"] in names
    assert len(names) == len(set(names))


def test_several_blocks_of_one_section_go_and_what_stands_between_them_stays() -> None:
    kept = [f'Metrics {{ Name: "kept__{number}" }}\n' for number in range(3)]
    dear = [f'Metrics {{ Name: "dear__{number}.sum" }}\n' for number in range(2)]
    section = kept[0] + dear[0] + kept[1] + dear[1] + kept[2]
    lean = without_metrics(section, ["dear__"])
    assert "".join(lean.split()) == "".join("".join(kept).split())


SAMPLED = """Identifier: "PmSampling"
DisplayName: "PM Sampling"
Sets {
  Identifier: "detailed"
}
Sets {
  Identifier: "full"
}
Metrics {
}
"""


def test_what_is_sampled_over_time_leaves_every_set_and_can_be_asked_for(tmp_path: Path) -> None:
    installed, folder = tmp_path / "installed", tmp_path / "unsampled"
    installed.mkdir()
    folder.mkdir()
    of_a_set = 'Identifier: "Other"\nSets {\n  Identifier: "full"\n}\n'
    (installed / "Other.section").write_text(of_a_set)
    (installed / "PmSampling.section").write_text(SAMPLED)
    assert write_lean_sections(installed, folder, ())
    assert (folder / "Other.section").read_text() == of_a_set
    kept = (folder / "PmSampling.section").read_text()
    assert 'Identifier: "PmSampling"' in kept and "Sets" not in kept and "Metrics {" in kept


@pytest.mark.parametrize(("metric_set", "timeline"), [("full", False), ("full", True), ("lean", True)])
def test_sets_of_ncu_get_a_folder_where_nothing_is_sampled(
    tmp_path: Path, metric_set: str, *, timeline: bool
) -> None:
    installation = tmp_path / "nsight-compute"
    for part in ("sections", "extras/python"):
        (installation / part).mkdir(parents=True)
    (installation / "extras/python/ncu_report.py").touch()
    (installation / "sections/PmSampling.section").write_text(SAMPLED)
    tool = Tool(installation / "ncu", (2025, 3, 1))
    with section_folder(tool, Collecting(metric_set=metric_set, timeline=timeline)) as folder:
        if metric_set == "full" and not timeline:
            assert folder is not None and "Sets" not in (folder / "PmSampling.section").read_text()
        else:
            assert folder is None
