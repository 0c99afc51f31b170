"""What an owner can change: findings in the words of Triton, torch or a library's call, and what is said beside them.

Code of one's own CUDA is left to the causes. Triton's and CUTLASS's programmers change other things for the same flaw;
of a library only the call can be changed, so a flaw of its code is no finding unless a call avoids it. Sizes come from
the time model, or from times of cuBLAS that were recorded (`causes.library_calls`); where neither knows, a sentence
stands without one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gemmprof.analysis.explanation.candidate import Candidate
from gemmprof.analysis.explanation.causes.library_calls import in_fp32, is_fp32, without_padding
from gemmprof.analysis.explanation.demands.work import Work
from gemmprof.analysis.inputs.names import Owner, owner_of
from gemmprof.model import KernelProfile

Words = Mapping[str, tuple[str, str]]  # by cause: what is changed in a few words, and the sentence

# What helps other low occupancy, a smaller block, makes this worse.
SHORT_PROGRAMS = (
    "more work a program",
    "Give each program more to do, by a larger BLOCK or a loop over several tiles: programs end sooner than the GPU "
    "launches new ones.",
)

TRITON: Words = {
    "uncoalesced_access": (
        "contiguous axis",
        "Let tl.arange of the innermost index run along the dimension with stride 1, and pass strides that are 1 as "
        "tl.constexpr: neighbouring threads touch addresses that lie apart.",
    ),
    "narrow_access": (
        "wider accesses",
        "Give each thread 16 bytes at once: a larger BLOCK or fewer num_warps, and tl.multiple_of and "
        "tl.max_contiguous on offsets whose alignment Triton cannot see.",
    ),
    "redundant_loads": (
        "larger BLOCK",
        "Use larger BLOCK sizes, so that what a program loads serves more outputs, and load what stays the same before "
        "the loop.",
    ),
    "cache_locality": (
        "order of programs",
        "Order the programs so that those at work together share their operands (tl.swizzle2d, GROUP_SIZE_M).",
    ),
    "shared_bank_conflicts": (
        "another layout",
        "Triton lays out shared memory itself: another BLOCK shape, num_warps or num_stages changes it; so does a "
        "tl.trans less.",
    ),
    "shared_memory_bandwidth": (
        "larger warp tiles",
        "Give each warp a larger tile: larger BLOCK sizes or fewer num_warps.",
    ),
    "global_atomics": (
        "fewer atomics",
        "Reduce within the program (tl.sum, tl.histogram) before tl.atomic_add, let one program walk all that goes to "
        "a target, or write partial results and add them in a second kernel. Those that stay need no fence where "
        'order does not matter (sem="relaxed").',
    ),
    "shared_atomics": (
        "reduction",
        "Reduce with tl.sum or tl.reduce along the axis instead of adding atomically.",
    ),
    "local_memory": (
        "fewer values a thread",
        "Use a smaller BLOCK or more num_warps: registers spill to memory.",
    ),
    "constant_divergence": (
        "loads",
        "Load such values through a pointer: threads of a warp read different arguments.",
    ),
    "idle_threads": (
        "grid",
        "Launch as many programs as there is work for, of as many warps: a grid of the size of the data, or a list of "
        "the blocks to do; fewer num_warps, or more rows a program, where a block has fewer elements than threads.",
    ),
    "branch_divergence": (
        "masks",
        "Replace branches on data by masks (tl.where), and give every program full blocks.",
    ),
    "workload_imbalance": (
        "persistent programs",
        "Let as many programs as fit take tile after tile (a persistent kernel), so that all end together.",
    ),
    "tail_effect": (
        "persistent programs",
        "Choose BLOCK sizes that fill whole rounds of the SMs, or let as many programs as fit take tile after tile (a "
        "persistent kernel).",
    ),
    "small_grid": (
        "smaller BLOCK",
        "Cut the work finer: smaller BLOCK sizes, or a reduction split over programs (SPLIT_K).",
    ),
    "low_occupancy": (
        "num_warps, num_stages, BLOCK",
        "Use fewer registers or less shared memory a program: a smaller BLOCK, fewer num_stages, other num_warps; "
        "triton.autotune tries them.",
    ),
    "instruction_latency": (
        "more warps",
        "Have more independent work: more num_warps, or a smaller BLOCK for more programs an SM.",
    ),
    "memory_latency": (
        "num_stages",
        "Raise num_stages, so that loads of later iterations are under way, or have more warps (num_warps, BLOCK).",
    ),
    "barriers": (
        "fewer num_warps",
        "Use fewer num_warps: what is reduced or multiplied across warps waits for all of them.",
    ),
    "instruction_cache": ("less code", "Write tl.range in place of tl.static_range, or use a smaller BLOCK."),
    "double_precision": (
        "float32",
        "Keep values and constants in tl.float32: a 64-bit tensor or scalar makes all that meets it 64-bit.",
    ),
    "integer_arithmetic": (
        "constexpr divisors",
        "Make divisors tl.constexpr, or index so that no // and % are needed.",
    ),
    "expensive_math": (
        "faster functions",
        "Use tl.exp2, tl.rsqrt or libdevice's fast functions where their precision suffices.",
    ),
    "non_fused_arithmetic": ("tl.fma", "Write tl.fma where a product is added."),
    "tensor_cores_idle": (
        "tl.dot",
        'Multiply with tl.dot: on 16-bit operands, or on FP32 with input_precision="tf32".',
    ),
    "warp_level_mma": (
        "warpgroups",
        "Let Triton use wgmma: num_warps of 4 or 8, BLOCK_M of 64 or more, operands straight from tl.load.",
    ),
    "launch_overhead": (
        "one launch for many",
        "Fuse neighbouring kernels into one.",
    ),
}

CUTLASS: Words = {
    "small_grid": (
        "smaller TileShape",
        "Use a smaller TileShape, or split K (GemmUniversal's split-K, the stream-K scheduler).",
    ),
    "tail_effect": (
        "stream-K, TileShape",
        "Use the stream-K or persistent scheduler, or a TileShape that fills whole rounds of the SMs.",
    ),
    "workload_imbalance": ("scheduler", "Use the persistent or stream-K tile scheduler."),
    "low_occupancy": (
        "stages, TileShape",
        "Use fewer stages or a smaller TileShape: they decide how many blocks an SM holds.",
    ),
    "memory_latency": ("stages", "Use more stages (StageCount), or the warp-specialised (ping-pong) schedule."),
    "instruction_latency": (
        "schedule",
        "Use the ping-pong schedule, or a TileShape with more independent products a warp.",
    ),
    "barriers": ("schedule", "Use the warp-specialised (ping-pong) schedule, or fewer, larger K tiles."),
    "cache_locality": ("swizzle", "Raise the threadblock swizzle (max_swizzle_size), or multicast in a ClusterShape."),
    "shared_bank_conflicts": ("layout", "Use CUTLASS's swizzled shared-memory layouts."),
    "shared_memory_bandwidth": ("larger tiles", "Use a larger warp tile (TileShape, WarpShape)."),
    "narrow_access": ("alignment", "Raise the alignment of the operands (AlignmentA, AlignmentB) to 16 bytes."),
    "uncoalesced_access": ("layout", "Choose the layout in which the operand's contiguous dimension is K or N."),
    "warp_level_mma": ("wgmma", "Use the CUTLASS 3 collectives of this architecture (wgmma, TMA)."),
    "launch_overhead": ("grouped call", "Use a grouped or batched GEMM for several products."),
}  # fmt: skip

TORCH: Words = {
    "uncoalesced_access": (
        "one layout",
        "Give the operator operands of one layout: transposed, sliced or expanded ones take its slow path. Call "
        ".contiguous() once where a tensor is used often; images: channels_last throughout.",
    ),
    "narrow_access": (
        "one layout",
        "Give the operator contiguous operands of one type that begin at a multiple of 16 bytes: then it takes its "
        "vectorised path.",
    ),
    "cache_locality": (
        "sorted indices",
        "Sort or group the indices, so that those used together lie together.",
    ),
    "global_atomics": (
        "sorted indices",
        "Sort or group the indices first: equal ones are added one after the other now.",
    ),
    "small_grid": (
        "torch.compile",
        "Give the operator more at once, or let torch.compile write another kernel for these sizes.",
    ),
    "double_precision": ("float32", "Keep the tensors in float32: a float64 one makes every result float64."),
    "integer_arithmetic": (
        "32 bits, masks",
        "Divide tensors of 32-bit integers where those hold the values, and by powers of two with torch.bitwise_and "
        "and bitwise_right_shift: the kernel divides by a number that it learns when it runs.",
    ),
}
# An operator along an axis that is not the last: its threads walk that axis one by one.
ALONG_OTHERS = re.compile(r"SpatialSoftMax|_outer_dim")
AXIS_LAST = (
    "that axis last",
    "Store the data with this axis last (movedim(d, -1).contiguous(), once where they are used often): along the last "
    "axis the operator takes a kernel in which the threads of a block share a row.",
)
ONE_BY_ONE = ("small_grid", "memory_latency", "redundant_loads")
"""Names of what such a kernel loses by it; the first that it has says it."""
INDUCTOR: Words = {
    **dict.fromkeys(
        ("low_occupancy", "memory_latency", "instruction_latency", "small_grid", "tail_effect"),
        (
            "other BLOCK sizes",
            'Let Inductor try more: torch.compile(mode="max-autotune-no-cudagraphs"), or '
            "torch._inductor.config.coordinate_descent_tuning = True.",
        ),
    ),
    "uncoalesced_access": TORCH["uncoalesced_access"],
    "narrow_access": TORCH["narrow_access"],
    "cache_locality": TORCH["cache_locality"],
    "global_atomics": TORCH["global_atomics"],
    "double_precision": TORCH["double_precision"],
    "tensor_cores_idle": ("TF32", 'Allow TF32: torch.set_float32_matmul_precision("high").'),
}
PRODUCTS: Words = {
    "tensor_cores_idle": (
        "TF32 or BF16",
        'Use the tensor cores: allow TF32 (torch.set_float32_matmul_precision("high"), '
        "CUBLAS_COMPUTE_32F_FAST_TF32), or pass BF16 operands.",
    ),
    "small_grid": (
        "split K, batch",
        "Put several products into one call (batched, grouped), or let the library split K: it needs a workspace "
        "(cublasSetWorkspace, CUBLAS_WORKSPACE_CONFIG).",
    ),
    "tail_effect": (
        "another plan",
        "Time several plans of cublasLt for this size (cublasLtMatmulAlgoGetHeuristic): another tile may fill the SMs "
        "evenly.",
    ),
    "double_precision": ("FP32", "Pass FP32 operands where that suffices."),
    "launch_overhead": ("batch", "Put several products into one call (batched, grouped)."),
}
ANY_LIBRARY: Words = {
    "double_precision": ("FP32", "Call it with FP32 where that suffices."),
    "launch_overhead": ("fewer calls", "Give it more at once (batched calls)."),
}
# What each owner changes; other libraries: `ANY_LIBRARY`.
WORDS: Mapping[str, Words] = {
    "triton": TRITON,
    "cutlass": CUTLASS,
    "torch": TORCH,
    "inductor": INDUCTOR,
    "cublas": PRODUCTS,
    "cudnn": {"tensor_cores_idle": PRODUCTS["tensor_cores_idle"],
              "double_precision": PRODUCTS["double_precision"]},
    "attention": {**ANY_LIBRARY, "double_precision": PRODUCTS["double_precision"]},
    "cupy": {**ANY_LIBRARY, "uncoalesced_access": TORCH["uncoalesced_access"],
             "launch_overhead": ("cupy.fuse", "Fuse element-wise operations (cupy.fuse).")},
    "nccl": {},
}  # fmt: skip

# Causes that a call avoids altogether; of others the library may keep some, down to all of it.
SURE = frozenset({"uncoalesced_access", "double_precision", "tensor_cores_idle", "launch_overhead"})
# Kernels whose flaw of that cause comes from what they are called with; others have it by themselves. A product of
# cuBLAS may be several kernels: the sum of a split K and the scaling of C are no calls.
_A_PRODUCT = re.compile(r"gemm|nvjet|gemv|dot_kernel|cutlass")
_TAKEN_BY: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "cublas": dict.fromkeys(("small_grid", "tail_effect", "launch_overhead"), _A_PRODUCT),
    "torch": {
        "uncoalesced_access": re.compile(
            r"(?<!vectorized_)elementwise_kernel|reduce_kernel|CatArray|index|gather|_copy_"
        ),
        "narrow_access": re.compile(r"(?<!vectorized_)elementwise_kernel|CatArray"),
        # An elementwise kernel has the blocks that its elements need.
        "small_grid": re.compile(r"^(?!.*elementwise)"),
        "integer_arithmetic": re.compile(r"remainder|fmod|div_|gcd|lcm"),
        "cache_locality": re.compile(r"index|gather|scatter|embedding", re.IGNORECASE),
        "global_atomics": re.compile(r"index|scatter|embedding", re.IGNORECASE),
    },
}


def offered(work: Work, found: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates that the kernel's owner can do something about, in its words."""
    owner = owner_of(work.profile)
    words = WORDS.get(owner.key, {} if owner.editable else ANY_LIBRARY)
    everything = tuple(found)
    taken_by = _TAKEN_BY.get(owner.key, {})
    wide = taken_by.get("narrow_access")
    if wide is not None and wide.search(work.profile.name):
        everything = tuple(_vectorised(everything))
    measured = {one.cause for one in everything if one.variants[0].known is not None}
    along = owner.key == "torch" and ALONG_OTHERS.search(work.profile.name)
    loses = next((cause for cause in ONE_BY_ONE if along and cause in {one.cause for one in everything}), "")
    for candidate in everything:
        known = candidate.variants[0].known is not None
        said = words.get(candidate.cause)
        fewer_blocks = "block_launch" in candidate.variants[0].fix.resources
        if owner.key == "triton" and candidate.cause == "low_occupancy" and fewer_blocks:
            said = SHORT_PROGRAMS
        if candidate.cause == loses:
            said = AXIS_LAST
        path = taken_by.get(candidate.cause)
        if candidate.cause in measured and not known:
            continue  # what was timed says more than a model
        if path is not None and not path.search(work.profile.name):
            continue
        if candidate.plain and owner.editable:
            yield candidate
        elif said is not None and owner.key == "cutlass":
            yield replace(candidate, change=f"{candidate.change} In CUTLASS: {said[1]}")
        elif said is not None:
            yield _in_words(work, candidate, said, owner)
        elif known or (owner.editable and owner.key != "triton"):
            yield candidate


def _vectorised(everything: Sequence[Candidate]) -> Iterator[Candidate]:
    """Operands of one layout take the operator's vectorised path: its accesses are wide, too."""
    narrow = next((one.fix for one in everything if one.cause == "narrow_access"), None)
    for one in everything:
        if narrow is not None and one.cause == "uncoalesced_access":
            yield replace(one, variants=(replace(one.variants[0], fix=one.fix.together(narrow)),))
        else:
            yield one


def of_the_kernel(work: Work, candidate: Candidate) -> bool:
    """Whether a kernel's owner can do something about it in the kernel, or in how it is called.

    That one's own launch is short tells no loss, nor that one of torch's is: what it is one of many, or stands between
    others, the program tells (`analysis.whole.program_advice`). A call of a library can be given more at once.
    """
    owner = owner_of(work.profile)
    return candidate.cause != "launch_overhead" or not (owner.editable or owner.key in ("torch", "inductor"))


def _fact(work: Work, cause: str) -> str:
    """What the launch's numbers say, before what to do about it."""
    blocks, sms = work.profile.launch.blocks, work.sms
    if cause == "small_grid":
        return (
            f"{blocks:,} leave{'s' if blocks == 1 else ''} {sms - blocks:.0f} of {sms:.0f} SMs without work. "
        )
    if cause == "tail_effect":
        return f"{blocks:,} blocks are {blocks / sms:.2f} for each of {sms:.0f} SMs. "
    if cause == "launch_overhead" and work.duration:
        return f"No SM works for {100 * work.idle_start:.0f} % of {work.duration / 1000:.1f} us. "
    return ""


def _in_words(work: Work, candidate: Candidate, said: tuple[str, str], owner: Owner) -> Candidate:
    """A candidate as its owner would put it. Of code that the reader cannot change: one way, and no place."""
    name, change = said
    ways = candidate.variants
    if owner.editable and len(ways) > 1:
        variants = tuple(replace(way, change="") for way in ways)
    else:
        up_to = not owner.editable and candidate.cause not in SURE
        variants = (replace(ways[0], name=name, up_to=up_to, change=""),)
    return replace(
        candidate,
        variants=variants,
        change=_fact(work, candidate.cause) + change,
        attributed=candidate.attributed if owner.editable else None,
    )


_OPERATORS = tuple(
    (re.compile(pattern), sentence)
    for pattern, sentence in (
        (r"FusedAdam|FusedSgd|FusedOptimizer|FusedAdagrad", ""),
        (r"multi_tensor_apply_kernel|addcdiv|addcmul|lerp_cuda",
         "An optimiser's step in several launches: fused=True (Adam, AdamW, SGD) is one pass over the parameters."),
        (r"FillFunctor", "Filling with zeros: zero_grad(set_to_none=True), torch.empty where everything is written."),
        (r"elementwise_kernel<.*(?:direct_copy|copy_kernel)|_copy_kernel_cuda",
         "A copy (.to(), .contiguous(), a cast of autocast): keep tensors in one type and layout; torch.compile "
         "fuses casts into their neighbours."),
        (r"CatArrayBatchedCopy", "torch.cat copies: write parts into one tensor from the start."),
        (r"softmax_warp|layer_norm|LayerNorm|GammaBeta|dropout|batch_norm|RowwiseMoments",
         "torch.compile fuses it with the element-wise operations around it; attention and norms have fused operators "
         "(scaled_dot_product_attention, rms_norm)."),
        (r"elementwise_kernel|reduce_kernel|gelu|threshold|clamp",
         "torch.compile fuses chains of element-wise operations and reductions; each launch reads and writes all its "
         "operands now."),
    )
)  # fmt: skip


# Share of the instructions that only copy a register, from which on nobody optimised the code: of 316 recorded kernels
# the most have 13 %, of eleven compiled with -G the fewest 36 %. Shorter code than that many instructions says nothing.
COPIES, CODE = 0.25, 64
# A copy under a predicate is a choice that an optimiser made of a branch: code for a debugger branches.
_COPY = re.compile(
    r"(?:MOV R\d+, R\d+|IADD3 R\d+, R\d+, RZ, RZ|IMAD\.MOV(?:\.U32)? R\d+, RZ, RZ, R\d+)\s*;?\s*$"
)


DEBUG_BUILD = (
    "A debug build: its code is not optimised (nvcc -G). Compile without -G (-lineinfo keeps the lines) and "
    "profile again: what holds this code back says nothing of the optimised one."
)


def is_debug_build(profile: KernelProfile) -> bool:
    """Whether the code was compiled for a debugger (-G), without optimisation."""
    code = profile.source.instructions
    if len(code) < CODE or not owner_of(profile).editable:
        return False
    return sum(bool(_COPY.match(one.sass)) for one in code) >= COPIES * len(code)


def levers(profile: KernelProfile, said: Collection[str] = ()) -> tuple[str, ...]:
    """What can be changed about the call besides the causes that are said, a sentence each, without a size."""
    owner, name = owner_of(profile), profile.name
    if is_debug_build(profile):
        return (DEBUG_BUILD,)
    if owner.key == "torch":
        found = next((sentence for pattern, sentence in _OPERATORS if pattern.search(name)), "")
        return (found,) if found else ()
    if owner.key == "cudnn" and re.search(r"n(?:chw|hwc)ToN(?:hwc|chw)", name, re.IGNORECASE):
        return (
            "A change of layout between NCHW and NHWC: with channels_last throughout, these launches go away.",
        )
    if owner.key == "cudnn" and is_fp32(name):
        return ("FP32 on the FMA pipe: torch.backends.cudnn.allow_tf32, or FP16 or BF16 by autocast.",)
    if owner.key == "cublas":
        return tuple(_of_a_product(profile, said))
    if owner.key == "nccl":
        return ("A collective waits for the slowest rank and the links, of which this report says nothing.",)
    if owner.key == "attention" and re.search(r"_f32_|float,", name):
        return ("FP32 attention: with FP16 or BF16 operands it runs on the tensor cores.",)
    return ()


def _of_a_product(profile: KernelProfile, said: Collection[str]) -> Iterator[str]:
    """Sentences on a call of cuBLAS."""
    if "splitKreduce" in profile.name:
        yield "The second half of a product whose K was split: fewer, larger products need none."
    if re.search(r"gemv|dot_kernel|gemmk1|gemmSN", profile.name):
        yield (
            "A product with one row or few: rows that meet the same matrix take about as long together as one does "
            "(docs/cublas_cliffs.md): batch them."
        )
    if "unaligned_operands" not in said and without_padding(profile) is not None:
        yield "Rows of its operands are no multiples of 16 bytes; padded, they take this architecture's own kernels."
    if "tensor_cores_idle" not in said and in_fp32(profile):
        yield "FP32 on the FMA pipe: TF32 or BF16 operands take the tensor cores, where their precision suffices."
