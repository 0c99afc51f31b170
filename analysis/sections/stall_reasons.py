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

# Each reason by its group: what a warp in that state waits for.
_MEANINGS = {
    "memory": {
        "long_scoreboard": "Waits for data of a global, local, surface or texture access through L1.",
        "lg_throttle": "Waits for room in the queue of local and global memory instructions.",
        "tex_throttle": "Waits for room in the queue of the texture unit.",
        "drain": "Has finished and waits for its stores to drain before it can leave.",
        "imc_miss": "Waits for a constant that missed in the immediate constant cache.",
    },
    "shared": {
        "short_scoreboard": "Waits for data of shared memory, a special function or a dynamic branch (the memory I/O "
        "unit).",
        "mio_throttle": "Waits for room in the memory I/O queue: shared memory, special functions and dynamic "
        "branches.",
    },
    "execution": {
        "wait": "Waits a fixed number of cycles for its previous instruction.",
        "math_pipe_throttle": "Waits for its arithmetic pipe, which is busy with other warps.",
        "dispatch_stall": "Was selected but held back by the dispatcher, for example by register-port conflicts.",
        "gmma": "Waits for warpgroup.arrive before a warpgroup matrix multiplication (wgmma) can start.",
    },
    "synchronisation": {
        "barrier": "Waits at a barrier of its block (__syncthreads or a named one) for other warps.",
        "membar": "Waits at a memory fence until its earlier accesses are visible.",
        "sleeping": "Sleeps: all its threads are in __nanosleep or yielded.",
    },
    "control": {
        "no_instruction": "Waits for its next instruction to be fetched, after an instruction-cache miss or a jump.",
        "branch_resolving": "Waits for a branch target to be computed.",
    },
    "other": {"misc": "Waits for a rare reason that ncu does not split further."},
    ISSUING: {
        "not_selected": "Is ready, but the scheduler issued from another warp: there are enough warps.",
        "selected": "Issues an instruction in this cycle.",
    },
}
_ABBREVIATIONS = ("lg", "imc", "mio", "gmma")


def _title(key: str) -> str:
    """As ncu prints it: ``Stall IMC Miss``."""
    words = (word.upper() if word in _ABBREVIATIONS else word.title() for word in key.split("_"))
    return " ".join(words if key == "selected" else ("Stall", *words))


REASONS: dict[str, StallReason] = {
    key: StallReason(key, _title(key), group, meaning)
    for group, meanings in _MEANINGS.items()
    for key, meaning in meanings.items()
}

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
    return StallReason(key, _title(key), "other", f"Is in the state that ncu calls '{words}'.")
