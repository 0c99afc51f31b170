"""What a build says of its kernels: the compiler's output and the compiled file, and both about the same kernels."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from pathlib import Path

import pytest
import recorded_data
from scale import few

from gemmprof.analysis.occupancy.configurations import (
    built_kernels,
    find_cuobjdump,
    parse_resource_usage,
    read_cubin,
    read_ptxas,
)
from gemmprof.base.errors import DeviceError, UsageError
from gemmprof.gpu.devices import KernelResources, cuobjdump_path, demangle, parse_ptxas

DATA = recorded_data.DATA / "occupancy"
PTXAS = (DATA / "ptxas_verbose.txt").read_text(encoding="utf-8")
USAGE = (DATA / "resource_usage.txt").read_text(encoding="utf-8")
SPILL, TILE, CALLS = "_Z5spillPKfPfi", "_Z4tileILi32ELi32EEvPKfPf", "_Z5callsPf"


def by_name(kernels: tuple[KernelResources, ...], architecture: str) -> dict[str, KernelResources]:
    return {kernel.name: kernel for kernel in kernels if kernel.architecture == architecture}


def test_every_kernel_and_target_of_the_compilers_output() -> None:
    kernels = parse_ptxas(PTXAS)
    assert [kernel.architecture for kernel in kernels] == ["sm_75"] * 6 + ["sm_90"] * 6 + ["sm_100"] * 6
    spill = by_name(kernels, "sm_90")[SPILL]
    assert (spill.registers_per_thread, spill.barriers, spill.stack_bytes) == (32, 1, 1176)
    assert (spill.spill_store_bytes, spill.spill_load_bytes) == (1504, 2324)
    assert "spills: 1,504 bytes stored, 2,324 bytes loaded" in spill.warning
    tile = by_name(kernels, "sm_75")[TILE]
    assert (tile.registers_per_thread, tile.static_shared_memory, tile.barriers) == (12, 4096, 1)
    assert tile.warning == ""


def test_a_function_that_was_not_inlined_lends_its_stack_to_no_kernel() -> None:
    text = PTXAS.replace(
        "Function properties for _Z6helperf\n    0 bytes stack frame, 0 bytes spill stores",
        "Function properties for _Z6helperf\n    64 bytes stack frame, 48 bytes spill stores",
    )
    assert text != PTXAS
    assert parse_ptxas(text) == parse_ptxas(PTXAS)


def test_output_of_a_whole_build_and_of_old_compilers() -> None:
    noisy = "[1/2] Building CUDA object\nwarning: unused variable\n" + PTXAS + "\nFAILED: other\n"
    assert parse_ptxas(noisy) == parse_ptxas(PTXAS)
    old = (
        "ptxas info    : Compiling entry function 'kernel' for 'sm_70'\n"
        "ptxas info    : Used 20 registers, 4096+16 bytes smem, 360 bytes cmem[0]\n"
    )
    (kernel,) = parse_ptxas(old)
    assert (kernel.registers_per_thread, kernel.static_shared_memory, kernel.barriers) == (20, 4112, None)


@pytest.mark.parametrize("text", ["", "nvcc: command not found", "ptxas info    : 0 bytes gmem\n"])
def test_output_without_a_kernel_says_how_to_get_it(text: str) -> None:
    with pytest.raises(UsageError, match="no kernel in the ptxas output") as raised:
        read_ptxas(text)
    assert "-Xptxas -v" in str(raised.value)


def test_cuobjdump_and_ptxas_agree_on_every_kernel() -> None:
    def compared(kernels: tuple[KernelResources, ...]) -> dict[tuple[str, str], tuple[int, int, int]]:
        return {
            (kernel.architecture, kernel.name): (
                kernel.registers_per_thread, kernel.static_shared_memory, kernel.stack_bytes
            )
            for kernel in kernels
        }  # fmt: skip

    assert compared(parse_resource_usage(USAGE)) == compared(parse_ptxas(PTXAS))


def test_the_drivers_reserve_is_no_shared_memory_of_the_kernels() -> None:
    kernels = parse_resource_usage(USAGE)
    assert "SHARED:5120" in USAGE
    assert by_name(kernels, "sm_90")[TILE].static_shared_memory == 4096
    assert by_name(kernels, "sm_75")[TILE].static_shared_memory == 4096
    assert by_name(kernels, "sm_100")[CALLS].static_shared_memory == 0


def test_a_stack_is_worth_a_warning_where_spills_are_not_told() -> None:
    spill = by_name(parse_resource_usage(USAGE), "sm_90")[SPILL]
    assert spill.spill_store_bytes is None
    assert "1,176 bytes of stack" in spill.warning


def test_occupancy_of_a_build() -> None:
    kernels = built_kernels(parse_ptxas(PTXAS), 1024, dynamic_shared_memory=20_000, architectures=[(9, 0)])
    assert len(kernels) == 6
    answers = {kernel.resources.name: kernel.occupancy for kernel in kernels}
    tile = answers[TILE]
    assert (tile.shared_memory_per_block, tile.block_barriers) == (24_096, 1)
    assert tile.theoretical_occupancy == 1.0
    calls = answers[CALLS]
    assert (calls.registers_per_thread, calls.block_barriers) == (31, 0)


def test_what_cannot_be_is_said_kernel_by_kernel() -> None:
    kernels = built_kernels(parse_ptxas(PTXAS), 1025)
    assert {kernel.occupancy for kernel in kernels} == {None}
    assert "1,025 threads per block" in kernels[0].problem
    unknown = KernelResources("kernel", "sm_52", 32)
    (old,) = built_kernels([unknown], 128)
    assert "sm_52" in old.problem


def test_a_target_that_the_build_lacks_is_named() -> None:
    with pytest.raises(UsageError, match=r"no kernel for 8\.9"):
        built_kernels(parse_ptxas(PTXAS), 128, architectures=[(8, 9)])


WITHOUT_CUOBJDUMP = cuobjdump_path() is None


@pytest.mark.skipif(shutil.which("nvcc") is None or WITHOUT_CUOBJDUMP, reason="needs nvcc and cuobjdump")
@pytest.mark.parametrize("target", few(["sm_75", "sm_90a", "sm_120"], ["sm_90a"]))
def test_a_cubin_of_this_compiler_is_what_its_ptxas_said(target: str, tmp_path: Path) -> None:
    cubin = tmp_path / "kernels.cubin"
    call = ["nvcc", f"-arch={target}", "-cubin", "-Xptxas", "-v", str(DATA / "kernels.cu"), "-o", str(cubin)]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    said = by_name(parse_ptxas(done.stdout + done.stderr), target)
    read = by_name(read_cubin(cubin), target)
    assert len(said) == 6
    assert {
        name: (k.registers_per_thread, k.static_shared_memory, k.stack_bytes) for name, k in read.items()
    } == {name: (k.registers_per_thread, k.static_shared_memory, k.stack_bytes) for name, k in said.items()}


@pytest.mark.skipif(WITHOUT_CUOBJDUMP, reason="needs cuobjdump")
def test_a_file_whose_name_is_an_option_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("--help").write_bytes(lzma.decompress((recorded_data.DATA / "builds" / "new.o.xz").read_bytes()))
    assert read_cubin("./--help")


@pytest.mark.skipif(WITHOUT_CUOBJDUMP, reason="needs cuobjdump")
def test_a_file_without_kernels_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no cubin")
    with pytest.raises(UsageError, match="holds no compiled kernel"):
        read_cubin(file)
    with pytest.raises(UsageError, match="does not exist"):
        read_cubin(tmp_path / "missing.cubin")


def test_without_cuobjdump_the_remedies_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr("gemmprof.gpu.devices.TOOLKIT", tmp_path)
    monkeypatch.setattr("gemmprof.gpu.devices.importlib.util.find_spec", lambda name: None)
    with pytest.raises(DeviceError, match="cuobjdump was not found") as raised:
        find_cuobjdump()
    for word in ("nvidia-cuda-cuobjdump", "CUDA_HOME", "--ptxas"):
        assert word in str(raised.value)


def test_cuobjdump_is_taken_from_cuda_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "cuobjdump"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert find_cuobjdump() == tool


def test_names_are_readable_where_a_demangler_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("c++filt") is not None:
        assert demangle([TILE, "plain_c_name"]) == ["void tile<32, 32>(float const*, float*)", "plain_c_name"]
    monkeypatch.setenv("PATH", "")
    assert demangle([TILE]) == [TILE]
