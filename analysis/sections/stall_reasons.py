"""Why a warp does not issue: every stall reason of Nsight Compute in one plain sentence.

The table serves the warp states of a kernel (`warp_states`) and the samples of a source line alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmprof.gpu.arch import has


@dataclass(frozen=True, slots=True)
class StallReason:
    """One warp state.

    Attributes:
        key: ncu's name in ``smsp__average_warps_issue_stalled_<key>_per_issue_active.ratio``.
        title: as ncu prints it ("Stall Long Scoreboard").
        group: key of `GROUPS`.
        meaning: one sentence: what a warp in this state waits for.
    """

    key: str
    title: str
    group: str
    meaning: str


# Title of each group of reasons, in the order of the pages.
GROUPS: dict[str, str] = {
    "memory": "Waiting for global or local memory",
    "shared": "Waiting for shared memory and the memory I/O queue",
    "execution": "Waiting for arithmetic",
    "synchronisation": "Waiting for other warps",
    "control": "Waiting for instructions",
    "other": "Other",
    "issuing": "Issuing or ready",
}

ISSUING = "issuing"  # the group of the two states in which nothing holds the warp back

_REASONS = (
    StallReason(
        "long_scoreboard",
        "Stall Long Scoreboard",
        "memory",
        "Waits for data of a global, local, surface or texture access through L1.",
    ),
    StallReason(
        "lg_throttle",
        "Stall LG Throttle",
        "memory",
        "Waits for room in the queue of local and global memory instructions.",
    ),
    StallReason(
        "tex_throttle", "Stall Tex Throttle", "memory", "Waits for room in the queue of the texture unit."
    ),
    StallReason(
        "drain",
        "Stall Drain",
        "memory",
        "Has finished and waits for its stores to drain before it can leave.",
    ),
    StallReason(
        "imc_miss",
        "Stall IMC Miss",
        "memory",
        "Waits for a constant that missed in the immediate constant cache.",
    ),
    StallReason(
        "short_scoreboard",
        "Stall Short Scoreboard",
        "shared",
        "Waits for data of shared memory, a special function or a dynamic branch (the memory I/O unit).",
    ),
    StallReason(
        "mio_throttle",
        "Stall MIO Throttle",
        "shared",
        "Waits for room in the memory I/O queue: shared memory, special functions and dynamic branches.",
    ),
    StallReason(
        "wait", "Stall Wait", "execution", "Waits a fixed number of cycles for its previous instruction."
    ),
    StallReason(
        "math_pipe_throttle",
        "Stall Math Pipe Throttle",
        "execution",
        "Waits for its arithmetic pipe, which is busy with other warps.",
    ),
    StallReason(
        "dispatch_stall",
        "Stall Dispatch Stall",
        "execution",
        "Was selected but held back by the dispatcher, for example by register-port conflicts.",
    ),
    StallReason(
        "gmma",
        "Stall GMMA",
        "execution",
        "Waits for warpgroup.arrive before a warpgroup matrix multiplication (wgmma) can start.",
    ),
    StallReason(
        "barrier",
        "Stall Barrier",
        "synchronisation",
        "Waits at a barrier of its block (__syncthreads or a named one) for other warps.",
    ),
    StallReason(
        "membar",
        "Stall Membar",
        "synchronisation",
        "Waits at a memory fence until its earlier accesses are visible.",
    ),
    StallReason(
        "sleeping",
        "Stall Sleeping",
        "synchronisation",
        "Sleeps: all its threads are in __nanosleep or yielded.",
    ),
    StallReason(
        "no_instruction",
        "Stall No Instruction",
        "control",
        "Waits for its next instruction to be fetched, after an instruction-cache miss or a jump.",
    ),
    StallReason(
        "branch_resolving", "Stall Branch Resolving", "control", "Waits for a branch target to be computed."
    ),
    StallReason("misc", "Stall Misc", "other", "Waits for a rare reason that ncu does not split further."),
    StallReason(
        "not_selected",
        "Stall Not Selected",
        ISSUING,
        "Is ready, but the scheduler issued from another warp: there are enough warps.",
    ),
    StallReason("selected", "Selected", ISSUING, "Issues an instruction in this cycle."),
)

REASONS: dict[str, StallReason] = {reason.key: reason for reason in _REASONS}  # every reason by key

# Reasons that the sampler calls otherwise than the warp-state counters do.
_SAMPLING_NAMES = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}


def reason(name: str, compute_capability: tuple[int, int] = (0, 0)) -> StallReason:
    """The reason by its name in a counter or a sampling metric; a plain one for a name that is new to gemmprof.

    Args:
        name: the name.
        compute_capability: of the GPU; ncu counts more to a barrier where there is more to wait for.
    """
    key = _SAMPLING_NAMES.get(name, name)
    known = REASONS.get(key)
    if known is not None and key == "barrier" and has("clusters", compute_capability):
        results = ", or for the results of wgmma" if has("wgmma", compute_capability) else ""
        return replace(known, meaning=f"Waits at a barrier of its block (__syncthreads) or cluster{results}.")
    if known is not None:
        return known
    words = key.replace("_", " ")
    return StallReason(key, f"Stall {words.title()}", "other", f"Is in the state that ncu calls '{words}'.")
