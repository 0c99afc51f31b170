"""Every stage on the GPU, in each of its types: right on any shape, and nothing touched outside the output."""

from __future__ import annotations

import fcntl
import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from late import needs_torch, torch

from gemmprof.gpu.dtypes import ELEMENT_TYPES
from gemmprof.kernels.catalog import LADDERS, all_variants
from gemmprof.model import Problem
from gemmprof.profiler.measuring import expected_norm, tolerance

pytestmark = [pytest.mark.gpu, needs_torch]


@dataclass(frozen=True)
class Kernel:
    """One operator, in one pair of types."""

    name: str
    dtype: str
    c_dtype: str

    @property
    def out(self) -> Any:
        """``operator(a, b, out, alpha, beta)``."""
        return getattr(torch.ops.gemmprof, f"{self.name}_out")

    @property
    def functional(self) -> Any:
        """``operator(a, b, c, alpha, beta)``."""
        return getattr(torch.ops.gemmprof, self.name)

    def randn(self, *shape: int, c: bool = False) -> Any:
        return torch.randn(shape, device="cuda").to(getattr(torch, self.c_dtype if c else self.dtype))

    def nan(self, *shape: int) -> Any:
        return torch.full(shape, float("nan"), dtype=getattr(torch, self.c_dtype), device="cuda")

    @property
    def usual(self) -> bool:
        """Whether C is of the type that it is of where nobody says."""
        return self.c_dtype == ELEMENT_TYPES[self.dtype].c_types[0]

    def allowed(self, k: int) -> float:
        """The largest relative error; of float32 one that a kernel which sums in order keeps at these depths."""
        return 2e-6 if self.dtype == "float32" else tolerance(Problem(1, 1, k, self.dtype, self.c_dtype))


KERNELS = [
    Kernel(variant.name, dtype, c_dtype)
    for variant in all_variants()
    for dtype in variant.stage.dtypes
    for c_dtype in ELEMENT_TYPES[dtype].c_types
]
NAMES = list(dict.fromkeys(kernel.name for kernel in KERNELS))
every_kernel = pytest.mark.parametrize(
    "kernel", KERNELS, ids=lambda kernel: f"{kernel.name}-{kernel.dtype}-{kernel.c_dtype}"
)
every_name = pytest.mark.parametrize("name", NAMES)
CASES = 300
LARGE = 20 * 2**30
"""Bytes of the GPU for a test that takes up to 17 GiB, and what the other tests take meanwhile."""
GUARD = 64
"""Elements of guard band before and after each operand."""

_DIMENSIONS = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    13,
    16,
    17,
    31,
    32,
    33,
    61,
    63,
    64,
    65,
    97,
    127,
    128,
    129,
    191,
    192,
    255,
    256,
    257,
)


@pytest.fixture(scope="module")
def extension():
    if not torch.cuda.is_available():
        pytest.skip("no GPU that torch can use")
    from gemmprof.kernels.build import build
    from gemmprof.kernels.operators import load

    return load(build())


@pytest.fixture(autouse=True)
def runs_here(request, extension):
    """Skips stages that are written for another GPU."""
    values = getattr(request.node, "callspec", None)
    values = values.params if values is not None else {}
    name = values["kernel"].name if "kernel" in values else values.get("name")
    if name is not None and name not in extension.names:
        pytest.skip(f"{name} is not built for this GPU")


@pytest.fixture
def room_on_the_card(tmp_path_factory):
    """One of few places for tests that take up to 17 GiB each, however many tests run side by side."""
    folder = tmp_path_factory.getbasetemp().parent
    while True:
        for place in range(max(1, torch.cuda.mem_get_info()[1] // LARGE)):
            with (folder / f"large-{place}.lock").open("w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield
                torch.cuda.empty_cache()  # what torch keeps would be missing to the others
                return
        time.sleep(0.05)


def random_shape(rng: random.Random) -> tuple[int, int, int]:
    def dimension() -> int:
        kind = rng.random()
        if kind < 0.5:
            return rng.choice(_DIMENSIONS)
        if kind < 0.75:
            return 4 * rng.randint(1, 150)
        return int(2 ** rng.uniform(0, 9.5))

    k = 0 if rng.random() < 0.04 else dimension()
    return dimension(), dimension(), k


class Guarded:
    """A matrix with any row stride and alignment, inside a buffer whose other elements are NaN."""

    def __init__(
        self, rows: int, columns: int, rng: random.Random, dtype: str, *, aligned: bool, fill: bool
    ) -> None:
        element = getattr(torch, dtype)
        padding = 0 if rng.random() < 0.5 else rng.randint(0, 9)
        shift = 0 if aligned else rng.randint(0, 3)
        if aligned:
            padding -= padding % (16 // element.itemsize)
        self.stride = columns + padding
        self.start = GUARD + shift
        length = self.start + rows * self.stride + GUARD
        self.buffer = torch.full((length,), float("nan"), device="cuda").to(element)
        self.matrix = self.buffer.as_strided((rows, columns), (max(self.stride, 1), 1), self.start)
        if fill:
            self.matrix.copy_(torch.randn(rows, columns, device="cuda"))

    def untouched_outside(self) -> bool:
        """Whether every element that is not the matrix's still is NaN."""
        inside = torch.zeros_like(self.buffer, dtype=torch.bool)
        inside.as_strided(self.matrix.shape, self.matrix.stride(), self.start).fill_(True)
        return bool(self.buffer[~inside].isnan().all())


def relative_error(out: torch.Tensor, reference: torch.Tensor) -> float:
    norm = reference.norm().item()
    difference = (out.double() - reference).norm().item()
    return difference / norm if norm else difference


@every_kernel
def test_random_shapes(extension, kernel):
    rng = random.Random(f"{kernel.name} {kernel.dtype} {kernel.c_dtype}")
    torch.manual_seed(rng.randrange(2**31))
    failures = []
    for _ in range(CASES):
        m, n, k = random_shape(rng)
        aligned = rng.random() < 0.5
        a = Guarded(m, k, rng, kernel.dtype, aligned=aligned, fill=True)
        b = Guarded(k, n, rng, kernel.dtype, aligned=aligned, fill=True)
        alpha = rng.choice((1.0, 1.0, -0.5, 2.25, 0.0))
        beta = rng.choice((0.0, 0.0, 1.0, -1.5))
        out = Guarded(m, n, rng, kernel.c_dtype, aligned=aligned, fill=beta != 0.0)
        reference = alpha * (a.matrix.double() @ b.matrix.double())
        if beta != 0.0:
            reference += beta * out.matrix.double()
        kernel.out(a.matrix, b.matrix, out.matrix, alpha, beta)
        error = relative_error(out.matrix, reference)
        if kernel.dtype == "float8_e4m3fn" and error:
            # Sums are cut relative to their largest products: a C of few elements may lie near zero by chance.
            error *= min(1.0, reference.norm().item() / expected_norm(Problem(m, n, k), alpha, beta))
        if not (error <= kernel.allowed(k)) or not out.untouched_outside():
            failures.append((m, n, k, alpha, beta, aligned, error, out.untouched_outside()))
    assert not failures, (
        f"{len(failures)} of {CASES} cases, (m, n, k, alpha, beta, aligned, error, guards): {failures[:5]}"
    )


@every_kernel
@pytest.mark.parametrize("shape", [(768, 1280, 512), (1152, 1536, 4096)], ids=str)
def test_whole_tiles(extension, kernel, shape):
    """The second has tiles that the fastest FP32 stage cuts along K so that every place takes as many steps."""
    torch.manual_seed(1)
    m, n, k = shape
    a, b, out = kernel.randn(m, k), kernel.randn(k, n), kernel.nan(m, n)
    kernel.out(a, b, out)
    assert relative_error(out, a.double() @ b.double()) <= kernel.allowed(k)
    if kernel.usual:
        assert torch.equal(kernel.functional(a, b), out)


@every_kernel
@pytest.mark.parametrize("shape", [(129, 200, 77), (512, 384, 640), (1, 70, 33)], ids=str)
def test_transposed_operands(extension, kernel, shape):
    """Stages of 16 and 8 bits take both storage orders of A and of B; the others refuse them."""
    torch.manual_seed(9)
    m, n, k = shape
    b = kernel.randn(n, k).T
    for a in (kernel.randn(m, k), kernel.randn(k, m).T):
        if kernel.dtype == "float32":
            with pytest.raises(ValueError, match="must be row-major"):
                kernel.functional(a, b)
            continue
        out = kernel.nan(m, n)
        kernel.out(a, b, out)
        assert relative_error(out, a.double() @ b.double()) <= kernel.allowed(k)


@every_kernel
def test_nan_and_infinity_propagate(extension, kernel):
    torch.manual_seed(10)
    a, b, out = kernel.randn(200, 136), kernel.randn(136, 264), kernel.nan(200, 264)
    # e4m3 has no infinity: that becomes NaN there.
    a[3, 5], b[100, 17] = (torch.tensor(float(value)).to(a) for value in ("nan", "inf"))
    kernel.out(a, b, out)
    expected = a.double() @ b.double()
    assert torch.equal(out.isnan(), expected.isnan()) and torch.equal(out.isinf(), expected.isinf())


@every_kernel
def test_functional_form_leaves_c_alone(extension, kernel):
    torch.manual_seed(2)
    a, b, c = kernel.randn(70, 33), kernel.randn(33, 90), kernel.randn(70, 90, c=True)
    before = c.clone()
    out = kernel.functional(a, b, c, alpha=0.5, beta=2.0)
    assert torch.equal(c, before) and out.dtype == c.dtype
    expected = 0.5 * (a.double() @ b.double()) + 2.0 * c.double()
    assert relative_error(out, expected) <= kernel.allowed(33)


@every_kernel
def test_other_stream(extension, kernel):
    """A launch waits for the work before it on its own stream, and the default stream does not wait for it."""
    torch.manual_seed(3)
    a, b = kernel.randn(256, 256), kernel.randn(256, 256)
    expected = (2 * a.double()) @ b.double()
    twos = torch.full_like(a, 2.0, dtype=torch.float32)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        doubled = (twos * a.float()).to(a.dtype)
        out = kernel.nan(256, 256)
        kernel.out(doubled, b, out)
    assert torch.cuda.default_stream().cuda_stream != stream.cuda_stream
    stream.synchronize()
    assert relative_error(out, expected) <= kernel.allowed(256)


@every_kernel
def test_graph_capture(extension, kernel):
    """A stage can be captured in a CUDA graph: it neither allocates nor synchronizes."""
    torch.manual_seed(4)
    a, b, out = kernel.randn(130, 64), kernel.randn(64, 200), kernel.nan(130, 200)
    kernel.out(a, b, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.out(a, b, out)
    a.copy_(torch.randn(a.shape, device="cuda"))
    out.fill_(float("nan"))
    graph.replay()
    assert relative_error(out, a.double() @ b.double()) <= kernel.allowed(64)


@pytest.mark.parametrize("shape", [(65535 * 256 + 77, 1, 2), (1, 65535 * 256 + 77, 2)], ids=["tall", "wide"])
@every_kernel
def test_larger_than_the_grid(extension, kernel, shape):
    """More rows or columns than 65,535 blocks of any tile cover, computed in bands."""
    m, n, k = shape
    torch.manual_seed(5)
    a, b, out = kernel.randn(m, k), kernel.randn(k, n), kernel.nan(m, n)
    kernel.out(a, b, out)
    assert relative_error(out, a.double() @ b.double()) <= kernel.allowed(k)


@pytest.mark.parametrize("shape", [(70_000, 40_000, 3), (70_000, 3, 40_000), (3, 70_000, 40_000)], ids="CAB")
@every_kernel
def test_more_elements_than_32_bits_count(extension, room_on_the_card, kernel, shape):
    """C, A or B holds 2.8 billion elements."""
    m, n, k = shape
    if torch.cuda.mem_get_info()[0] < 14 * 2**30:
        pytest.skip("needs 14 GiB of free GPU memory")
    torch.manual_seed(6)
    a, b, out = kernel.randn(m, k), kernel.randn(k, n), kernel.nan(m, n)
    kernel.out(a, b, out)
    assert not bool(out.isnan().any())
    allowed = max(2e-5, kernel.allowed(k))
    for part in (slice(0, 100), slice(53_600, 53_700), slice(-100, None)):
        if m > n or m == 70_000:
            assert relative_error(out[part], a[part].double() @ b.double()) <= allowed
        else:
            assert relative_error(out[:, part], a.double() @ b[:, part].double()) <= allowed


@every_name
def test_registers_and_shared_memory_match_the_assembler(extension, name):
    """What the runtime reports of each kernel is what ptxas said when it was built."""
    from gemmprof.kernels.build import build

    capability = "sm_{}{}".format(*torch.cuda.get_device_capability())
    built = [k for k in build().stages[name].note.kernels if k.architecture.rstrip("af") == capability]
    assembled = Counter((k.registers_per_thread, k.static_shared_memory) for k in built)
    gemms = Counter(
        (k.registers_per_thread, k.static_shared_memory) for k in built if "gemm" in k.name.partition("<")[0]
    )
    reported = extension.occupancy(name)
    listed = Counter((kernel.registers_per_thread, kernel.static_shared_memory) for kernel in reported)
    # A stage lists every GEMM of its own, and of its helpers (copies of unaligned operands) those that it wants to.
    assert gemms <= listed <= assembled
    assert all(kernel.blocks_per_sm >= 1 for kernel in reported)


@every_kernel
def test_unaligned_view_of_the_same_buffer(extension, kernel):
    """Column halves of one buffer may be input and output: they share no element."""
    if kernel.dtype != kernel.c_dtype:
        pytest.skip("a buffer is of one type")
    torch.manual_seed(7)
    buffer, b = kernel.randn(100, 200), kernel.randn(100, 100)
    a, out = buffer[:, :100], buffer[:, 100:]
    expected = a.double() @ b.double()
    kernel.out(a, b, out)
    assert relative_error(out, expected) <= kernel.allowed(100)


def test_operands_on_cpu_and_gpu(extension):
    with pytest.raises(ValueError, match=r"B must be on a CUDA device, found cpu"):
        torch.ops.gemmprof.naive(torch.randn(3, 3, device="cuda"), torch.randn(3, 3))


@every_name
def test_resident_blocks_agree_with_the_occupancy_calculation(extension, name):
    """cudaOccupancyMaxActiveBlocksPerMultiprocessor and gemmprof's own arithmetic, on the kernels as built."""
    from gemmprof.analysis.occupancy.calculator import occupancy

    for kernel in extension.occupancy(name):
        calculated = occupancy(
            torch.cuda.get_device_capability(),
            kernel.threads_per_block,
            kernel.registers_per_thread,
            kernel.static_shared_memory + kernel.dynamic_shared_memory,
        )
        assert calculated.blocks_per_sm == kernel.blocks_per_sm, kernel


def test_tuned_parameters_are_what_runs(extension, tmp_path, monkeypatch):
    """A candidate of the search, called as the search calls it."""
    from dataclasses import replace

    from gemmprof.kernels.catalog import stage_by_number, stage_variants
    from gemmprof.kernels.compiler import compile_candidate
    from gemmprof.kernels.operators import LoadedCandidate

    variant = stage_variants(stage_by_number(9))[0]
    changed = replace(variant, parameters={**variant.parameters, "BM": 64, "BK": 8})
    candidate = compile_candidate(changed, "{}.{}".format(*torch.cuda.get_device_capability()))
    loaded = LoadedCandidate.load(variant.name, candidate.library)
    torch.manual_seed(8)
    a, b = torch.randn(200, 100, device="cuda"), torch.randn(100, 300, device="cuda")
    out = torch.full((200, 300), float("nan"), device="cuda")
    loaded.kernel()(a, b, out, 2.0, 0.0)
    assert relative_error(out, 2.0 * (a.double() @ b.double())) <= 2e-6
    assert loaded.occupancy()[0].registers_per_thread > 0


@every_kernel
def test_operators_keep_torchs_contract(extension, kernel):
    """Schema, shape function and dispatch agree with what the operators do (torch's own checker)."""
    a, b, out = kernel.randn(33, 20), kernel.randn(20, 47), kernel.nan(33, 47)
    checks = ["test_schema", "test_faketensor", "test_aot_dispatch_static"]
    if kernel.dtype == "float8_e4m3fn":
        checks.remove("test_schema")  # it hashes the operands by arithmetic that torch has not of 8 bits
    torch.library.opcheck(kernel.functional.default, (a, b), test_utils=checks)
    torch.library.opcheck(kernel.out.default, (a, b, out), test_utils=checks)


@pytest.mark.parametrize(
    "shape",
    [
        (128, 128, 128), (1, 64, 300), (16, 1024, 4096), (130, 257, 391), (1000, 520, 1000), (3000, 2600, 1100),
        (2560, 4096, 2000), (1536, 1536, 300), (1701, 1480, 784), (1503, 1776, 688), (930, 1136, 1168),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["rows", "columns alone", "blocks", "rows, fast", "one, fast"])
def test_fp8_scales_of_rows_and_blocks(extension, shape, kind):
    """As torch._scaled_mm takes them, against a float64 product; the same bits every time."""
    from gemmprof.kernels.scaled import scaled_mm

    (m, n, k), fill = shape, torch.Generator(device="cuda").manual_seed(sum(shape))
    a, b = (torch.randn(r, k, generator=fill, device="cuda").to(torch.float8_e4m3fn) for r in (m, n))
    steps, wide = -(-k // 128), -(-n // 128)
    if kind == "blocks":
        scale_a = torch.rand(steps, m, generator=fill, device="cuda").T + 0.5
        scale_b = torch.rand(steps, wide, generator=fill, device="cuda") + 0.5
        each_a = scale_a.repeat_interleave(128, 1)[:, :k]
        each_b = scale_b.repeat_interleave(128, 0)[:k].repeat_interleave(128, 1)[:, :n]
    else:
        high, wide_b = m if kind.startswith("rows") else 1, 1 if kind == "one, fast" else n
        scale_a = torch.rand(high, 1, generator=fill, device="cuda") + 0.5
        scale_b = torch.rand(1, wide_b, generator=fill, device="cuda") + 0.5
        each_a, each_b = scale_a, scale_b
    right = (a.double() * each_a.double()) @ (b.double().T * each_b.double())
    for second in (b.T, b.T.contiguous(), b.T[:, :-1]):
        scales = scale_a, scale_b if kind == "blocks" else scale_b[:, : second.shape[1]]
        if kind == "blocks" and -(-second.shape[1] // 128) != wide:
            continue
        fast = kind.endswith("fast")  # the tensor cores keep 14 bits of a sum: 1.3e-3 at K = 4096
        for c_dtype, most in ((torch.bfloat16, 3e-3), (torch.float16, 1e-3), (torch.float32, 4e-4)):
            made = [scaled_mm(a, second, *scales, c_dtype, use_fast_accum=fast) for _ in range(2)]
            wanted = right[:, : second.shape[1]]
            error = (made[0].double() - wanted).norm() / wanted.norm()
            assert error < most + (1.5e-3 if fast else 0.0), c_dtype
            assert torch.equal(*made)


@pytest.mark.long(seconds=45)
def test_random_products_back_to_back(extension):
    """A part of `make campaign-gpu`: two streams, graphs, a full card, other shapes in between, every C to the bit."""
    from random_products import try_products

    tally = try_products(80_000, 2, extension.names)
    assert not tally.wrong, tally.examples
    for ladder in LADDERS:
        tried = sum(tally.problems[variant.name] for variant in all_variants([ladder]))
        assert tried > 8_000, ladder.name
