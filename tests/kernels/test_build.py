"""The build: every stage for every architecture, and the cache that makes a second build compile nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import compiled_resources
import pytest
from called_stages import CALLED, as_noted

from gemmprof.base.errors import BuildError
from gemmprof.base.progress import Progress
from gemmprof.base.system import cache_directory
from gemmprof.gpu import devices
from gemmprof.gpu.arch import BUILT
from gemmprof.kernels import build as build_module
from gemmprof.kernels import compiler
from gemmprof.kernels.build import build
from gemmprof.kernels.catalog import all_variants
from gemmprof.kernels.compiler import architecture_number, compile_candidate, require_nvcc, target_number
from gemmprof.kernels.operators import LoadedCandidate


def test_stages_compile_for_every_architecture(built):
    numbers = [name.removeprefix("sm_") for name in built.architectures]
    assert len(numbers) in (1, len(BUILT))
    assert not built.failures and not built.skipped
    variants = {variant.name: variant for variant in all_variants()}
    assert set(CALLED) <= set(built.stages) <= set(variants)
    assert len(numbers) == 1 or set(built.stages) == set(variants)
    for name, stage in built.stages.items():
        targets = (target_number(variants[name].stage.architectures, number) for number in numbers)
        assert {kernel.architecture for kernel in stage.note.kernels} == {f"sm_{t}" for t in targets if t}, (
            name
        )
        assert stage.resources("sm_90").registers_per_thread > 0


def test_a_stage_in_parts_has_each_kernel_once(built, nvcc):
    if "hgemm_fastest" not in built.stages:
        pytest.skip("its sources are those that the tables were made from: the campaign compiles it")
    fastest = next(variant for variant in all_variants() if variant.name == "hgemm_fastest")
    numbers = [name.removeprefix("sm_") for name in built.architectures]
    units = compiler.stage_units(fastest, require_nvcc(), numbers)
    assert len(units) > 1 and len({unit.key for unit in units}) == len(units)
    kernels = built.stages["hgemm_fastest"].note.kernels
    assert len({kernel.name for kernel in kernels}) == len(kernels)
    cache = cache_directory()
    records = [compiler.read_record(cache, [unit]) for unit in units]
    assert sum(len(record.kernels) for record in records) == len(kernels)
    first, *others = (len(record.kernels) for record in records)
    # The first has the small kernels, of small products, odd sizes and packing, in the time of some 8 tiles.
    assert first <= 16 and max(others) <= 10, "a part takes longer than the others"


SPILLED_BYTES = {"hgemm_fastest": 100, "fastest": 16, "fp8gemm_promoted": 96}
"""Bytes that a stage's kernels may spill: a few words of the producer, outside of what the consumers wait for; two
words of eight columns at a time, where memory is what is waited for; eight words of the producer and between tiles."""


def test_no_kernel_spills(built):
    spills = [
        (s.name, k.name, k.architecture)
        for s in built.stages.values()
        for k in s.note.kernels
        if k.spill_bytes > SPILLED_BYTES.get(s.name, 0)
    ]
    assert not spills


def committed(path, built, of):
    """The heading of a committed table, and its lines of stages and architectures that stand in the other lines."""
    compiler, heading, *lines = path.read_text(encoding="utf-8").splitlines()
    if compiler != f"# {built.compiler}":
        pytest.skip(f"the table was made by {compiler}, this is {built.compiler}")
    column = heading.split(",").index("architecture") - len(heading.split(","))
    there = {line.split(",")[column] for line in of[1:]}
    assert {line.partition(",")[0] for line in lines} <= {variant.name for variant in all_variants()}
    return heading, [
        line for line in lines if line.partition(",")[0] in built.stages and line.split(",")[column] in there
    ]


def test_resources_equal_the_committed_table(built):
    found = compiled_resources.table(built).splitlines()
    heading, lines = committed(compiled_resources.TABLE, built, found)
    known = {line.partition(",")[0] for line in (heading, *lines)}
    # A stage that is not in the table yet has no line to differ from.
    assert [line for line in found if line.partition(",")[0] in known] == [heading, *lines], (
        "run `python tools/compiled_resources.py` and look at what changed"
    )


def test_machine_code_equals_the_committed_table(built):
    found = compiled_resources.sass_table(built).splitlines()
    heading, lines = committed(compiled_resources.SASS_TABLE, built, found)
    if not any(stage.note.sass for stage in built.stages.values()):
        pytest.skip("there is no cuobjdump")
    assert {"sm_90", "sm_90a"} <= {line.split(",")[1] for line in found}
    assert found == [heading, *lines], (
        "the machine code changed: run `python tools/compiled_resources.py`, "
        "then tools/update_readme.py, which says what of the recorded run no longer holds"
    )


def test_what_is_compiled_again_is_what_changed(nvcc, tmp_path, monkeypatch):
    """A stage's source, a header that it includes, a line of a table: each has its stages compiled and compared."""
    tool = require_nvcc()
    monkeypatch.setattr(compiled_resources, "MADE_FROM", tmp_path / "made_from.csv")
    compiled_resources.note_sources()
    everything = {variant.name for variant in all_variants()}
    assert as_noted(tool) == everything
    sources = tmp_path / "kernels"
    shutil.copytree(compiler.SOURCES, sources)
    monkeypatch.setattr(compiler, "SOURCES", sources)
    assert as_noted(tool) == everything
    with (sources / next(v.source for v in all_variants() if v.name == "naive")).open("a") as file:
        file.write("// another\n")
    assert as_noted(tool) == everything - {"naive"}
    monkeypatch.setattr(compiled_resources, "SASS_TABLE", sources / "sass.csv")
    lines = (sources / "sass.csv").read_text().splitlines()
    place = next(place for place, line in enumerate(lines) if line.startswith("block1d,sm_90"))
    lines[place] = lines[place][:-1] + ("0" if lines[place][-1] != "0" else "1")
    (sources / "sass.csv").write_text("\n".join([*lines, ""]))
    assert as_noted(tool) == everything - {"naive", "block1d"}
    with (sources / "include" / "gemm.cuh").open("a", encoding="utf-8") as file:
        file.write("// a comment\n")
    assert "shared" not in as_noted(tool)


# The cache.


def test_what_is_built_is_found_again_without_torch(built):
    """What becomes of it when something changes, is damaged or is killed is the campaign's."""
    code = (
        "import sys\n"
        "from gemmprof.kernels.build import build\n"
        f"result = build(architectures={list(built.architectures)}, names={list(built.stages)})\n"
        "assert result.compiled == () and result.seconds < 1\n"
        f"assert str(result.library) == {str(built.library)!r}\n"
        "assert all(not stage.compiled and stage.resources() for stage in result.stages.values())\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# With one stage to keep it quick.


class Notes(Progress):
    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


@pytest.fixture(scope="module")
def filled_cache(nvcc, tmp_path_factory):
    pytest.importorskip("torch")
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GEMMPROF_CACHE", str(cache))
        progress = Notes()
        result = build(
            architectures=["9.0"],
            names=["naive"],
            jobs=2,
            progress=progress,
        )
    assert sorted(result.compiled) == ["include/binding.cpp", "include/runtime.cu", "naive"]
    assert [note.partition(" (")[2] for note in progress.notes] == ["1 of 3)", "2 of 3)", "3 of 3)"]
    return cache


@pytest.fixture
def cache(filled_cache, tmp_path, monkeypatch):
    """A copy of a cache that holds a build of one stage."""
    copy = tmp_path / "cache"
    shutil.copytree(filled_cache, copy)
    monkeypatch.setenv("GEMMPROF_CACHE", str(copy))
    return copy


DAMAGES = {"object.o cut": b"\x7fELF", "record.json empty": b"{}", "record.json broken": b"[[["}


def build_naive(**options):
    return build(architectures=["9.0"], names=["naive"], **options)


@pytest.mark.campaign
def test_second_build_compiles_nothing(cache):
    result = build_naive()
    assert result.compiled == ()
    assert result.library.is_file()
    assert result.seconds < 1
    assert not result.stages["naive"].compiled
    assert result.stages["naive"].resources().registers_per_thread > 0


@pytest.mark.campaign
def test_second_build_does_not_import_torch(cache):
    code = (
        "import sys\n"
        "from gemmprof.kernels.build import build\n"
        "assert build(architectures=['9.0'], names=['naive']).compiled == ()\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.campaign
def test_changed_parameter_compiles_one_stage(cache):
    before = build_naive()
    after = build_naive(parameters={"naive": {"BLOCK": 16}})
    assert after.compiled == ("naive",)
    assert after.stages["naive"].compiled
    assert after.library != before.library
    assert after.stages["naive"].source_hash != before.stages["naive"].source_hash
    assert build_naive().compiled == ()


@pytest.mark.campaign
def test_changed_header_compiles_its_stages(cache, tmp_path, monkeypatch):
    sources = tmp_path / "kernels"
    shutil.copytree(compiler.SOURCES, sources)
    monkeypatch.setattr(compiler, "SOURCES", sources)
    assert build_naive().compiled == ()
    with (sources / "include" / "gemm.cuh").open("a", encoding="utf-8") as file:
        file.write("// a comment\n")
    assert build_naive().compiled == ("naive",)


@pytest.mark.campaign
def test_lost_library_is_linked_again(cache):
    library = build_naive().library
    shutil.rmtree(library.parent)
    result = build_naive()
    assert result.compiled == ()
    assert result.library.is_file()


@pytest.mark.campaign
def test_lost_objects_do_not_matter_while_the_library_is_there(cache):
    shutil.rmtree(cache / "objects")
    assert build_naive().compiled == ()


@pytest.mark.campaign
@pytest.mark.parametrize("damaged", list(DAMAGES))
def test_a_damaged_object_or_record_is_made_again(cache, damaged):
    (cache / "libraries").rename(cache / "gone")
    # The binding's object names the stage, too; its record does not.
    folder = next(
        path.parent for path in cache.glob("objects/*/record.json") if b'"name": "naive"' in path.read_bytes()
    )
    (folder / damaged.split()[0]).write_bytes(DAMAGES[damaged])
    result = build_naive()
    assert result.compiled == ("naive",)
    assert result.stages["naive"].resources().registers_per_thread > 0


@pytest.mark.campaign
def test_a_damaged_library_is_linked_again(cache):
    library = build_naive().library
    whole = library.read_bytes()
    for damage in (whole[: len(whole) // 2], whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]):
        library.write_bytes(damage)
        assert build_naive().compiled == ()
        assert library.read_bytes() != damage
    (library.parent / "build.json").write_text('{"naive": 1}')
    assert build_naive().stages["naive"].resources().registers_per_thread > 0


def test_a_cut_candidate_is_not_loaded(nvcc, tmp_path, monkeypatch):
    # nvcc takes a path with a comma for two.
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path / "cache, of builds"))
    variant = next(variant for variant in all_variants() if variant.name == "naive")
    candidate = compile_candidate(variant, "9.0")
    whole = candidate.library.read_bytes()
    candidate.library.write_bytes(whole[:-4096])
    with pytest.raises(BuildError, match="is damaged"):
        LoadedCandidate.load("naive", candidate.library)
    assert compile_candidate(variant, "9.0").library.stat().st_size == len(whole)
    assert LoadedCandidate.load("naive", candidate.library).name == "naive"


@pytest.mark.campaign
def test_compiler_message_reaches_the_user(cache):
    with pytest.raises(BuildError) as caught:
        build_naive(parameters={"naive": {"BLOCK": 64}})
    assert "naive.cu could not be built" in str(caught.value)
    assert "a block has BLOCK x BLOCK threads, and at most 1024" in caught.value.found
    assert not list(cache.glob("*/.*")), "a failed build leaves no scratch folder"


@pytest.mark.campaign
def test_stage_that_does_not_compile_leaves_the_others(cache):
    result = build(
        architectures=["9.0"], names=["naive", "coalesced"], parameters={"coalesced": {"BLOCK": 33}}
    )
    assert set(result.stages) == {"naive"}
    assert result.library.is_file()
    assert "a block has BLOCK x BLOCK threads, and at most 1024" in result.failures["coalesced"]
    # What is left is the library that the cache has already.
    assert result.library == build_naive().library


@pytest.mark.campaign
def test_architecture_that_the_compiler_does_not_know(cache):
    with pytest.raises(BuildError) as caught:
        build(architectures=["2.0"], names=["naive"])
    assert any("newer CUDA toolkit" in remedy for remedy in caught.value.remedies)


@pytest.mark.campaign
def test_concurrent_builds_compile_once(cache):
    code = (
        "from gemmprof.kernels.build import build\n"
        "result = build(architectures=['9.0'], names=['naive'], parameters={'naive': {'BLOCK': 8}})\n"
        "assert result.library.is_file()\n"
        "print(len(result.compiled))\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    compiled = [int(process.communicate()[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sorted(compiled) == [0, 0, 1]


@pytest.mark.campaign
def test_killed_build_leaves_the_cache_usable(cache):
    code = (
        "from gemmprof.kernels.build import build\n"
        "build(architectures=['9.0'], names=['naive'], parameters={'naive': {'BLOCK': 4}})\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + 60
    while not list((cache / "objects").glob(".scratch-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert build_naive().compiled == ()
    assert build_naive(parameters={"naive": {"BLOCK": 4}}).compiled == ("naive",)


def test_no_compiler(monkeypatch, tmp_path):
    for variable in ("CUDACXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(devices.shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match="nvcc was not found") as caught:
        build_naive()
    assert any("CUDA_HOME" in remedy for remedy in caught.value.remedies)


def test_no_torch(monkeypatch, nvcc):
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match="torch is not installed"):
        build_naive()


def test_cache_that_cannot_be_written(nvcc, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GEMMPROF_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(BuildError, match="cannot be written") as caught:
        build_naive()
    assert any("GEMMPROF_CACHE" in remedy for remedy in caught.value.remedies)


@pytest.mark.parametrize(
    ("text", "number"), [("9.0", "90"), ("sm_90", "90"), ("90", "90"), ("12.0", "120"), ("sm_90a", "90a")]
)
def test_architecture_names(text, number):
    assert architecture_number(text) == number


@pytest.mark.parametrize("text", ["", "hopper", "9", "sm_"])
def test_architecture_that_is_none(text):
    with pytest.raises(BuildError, match="no GPU architecture"):
        architecture_number(text)


def test_unknown_parameter():
    with pytest.raises(BuildError, match="no stage naive with parameters BM"):
        build_module.with_parameters(all_variants(), {"naive": {"BM": 1}})
