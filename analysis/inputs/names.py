"""Short names of kernels that still tell them apart.

Demangled names of templates run to thousands of characters, and what tells two of them apart is often one number deep
inside. A label keeps the name without its parameters, and of the template arguments those in which kernels of the same
name differ; ``…`` stands for what they share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gemmprof.base.amounts import fit
from gemmprof.base.foreign_files import facts
from gemmprof.base.spread import grouped
from gemmprof.model import KernelProfile

ELISION = "…"
NUMBA = "cudapy::"  # with which names of its kernels begin
ROOM = 110  # characters of arguments that are shown where nothing needs to be told apart by them
_CAST = re.compile(r"\((?:unsigned )?(?:bool|char|short|int|long|long long)\)(?=-?\d)")
_BRACKET = re.compile(
    r"operator(?: ?(?:\(\)|\[\]|->\*?|<=>|<<=|>>=|<<|>>|<=|>=|<|>))?|<unnamed>|->|([][<>(){}])"
)
_OPENING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


@dataclass(frozen=True, slots=True)
class _Group:
    """A bracketed list: ``<int, 4>``."""

    opening: str
    items: tuple[_Name, ...]


_Name = tuple["str | _Group", ...]  # a name as pieces of text and bracketed lists, in order


def labels(names: Iterable[str]) -> dict[str, str]:
    """A label for each distinct demangled name, no two alike.

    A name without template arguments keeps its bare name: ``void f(int *)`` is ``f``; parameters appear where nothing
    else differs.
    """
    distinct = list(dict.fromkeys(names))
    split = {name: _split(name) for name in distinct}
    heads = grouped((_head(body), name) for name, (body, _) in split.items())
    found: dict[str, str] = {}
    for members in heads.values():
        bodies = list(dict.fromkeys(split[name][0] for name in members))
        shown = dict(zip(bodies, _told_apart([_parse(body) for body in bodies]), strict=True))
        for name in members:
            found[name] = shown[split[name][0]]
        for body in bodies:
            overloads = [name for name in members if split[name][0] == body]
            if len(overloads) > 1:
                parameters = _told_apart([_parse(split[name][1]) for name in overloads])
                found.update({n: shown[body] + p for n, p in zip(overloads, parameters, strict=True)})
    # The full name where two kernels would share a label.
    count = Counter(found.values())
    return {name: found[name] if count[found[name]] == 1 else name for name in distinct}


def label(name: str) -> str:
    """The label of a kernel that is looked at alone, where nobody knows what else its report holds."""
    return labels([name])[name]


def _split(name: str) -> tuple[str, str]:
    """The name without return type, parameters and the casts of its numbers, and the parameters."""
    end = len(name)
    depth = 0
    for position, character in _brackets(name):
        if depth == 0 and character == "(" and not name.startswith("(anonymous", position):
            end = position
            break
        depth += 1 if character in _OPENING else -1
    body = _CAST.sub("", name[:end].removeprefix("void ").strip())
    return body or name, name[end:]


def _head(body: str) -> str:
    """The text before the first template argument."""
    return next((body[:position] for position, character in _brackets(body) if character == "<"), body)


def _brackets(text: str) -> Iterable[tuple[int, str]]:
    """Every bracket with its place; not those of operators: ``operator<``, ``->``, ``<unnamed>``."""
    return ((found.start(1), found[1]) for found in _BRACKET.finditer(text) if found[1])


def _parse(text: str) -> _Name:
    """The name as pieces; brackets that do not match are text, of which so much is shown as of arguments."""
    stack: list[tuple[str, list[_Name], list[str | _Group]]] = [("", [], [])]
    last = 0
    brackets = {position for position, _ in _brackets(text)}
    for position, character in enumerate(text):
        if position not in brackets and not (character == "," and len(stack) > 1):
            continue
        opening, items, pieces = stack[-1]
        closes = character in _CLOSING
        if closes and _OPENING.get(opening) != character:
            continue
        if text[last:position]:
            pieces.append(text[last:position])
        last = position + 1
        if character in _OPENING:
            stack.append((character, [], []))
        elif closes:
            items.append(_trimmed(pieces))
            stack.pop()
            stack[-1][2].append(_Group(opening, tuple(items)))
        else:
            items.append(_trimmed(pieces))
            pieces.clear()
    if len(stack) > 1:
        return (fit(text, ROOM),)
    pieces = stack[0][2]
    return (*pieces, text[last:]) if text[last:] else tuple(pieces)


def _trimmed(pieces: Sequence[str | _Group]) -> _Name:
    kept = list(pieces)
    if kept and isinstance(kept[0], str):
        kept[0] = kept[0].lstrip()
    if kept and isinstance(kept[-1], str):
        kept[-1] = kept[-1].rstrip()
    return tuple(piece for piece in kept if piece != "")


def _within(name: _Name, room: int) -> str:
    """The name whole where it is short, else with its innermost arguments left out, as few as need be."""
    shown = (_to_depth(name, depth) for depth in range(12, 0, -1))
    return next((text for text in shown if len(text) <= room), _to_depth(name, 0))


def _to_depth(name: _Name, depth: int) -> str:
    pieces = []
    for piece in name:
        if isinstance(piece, str):
            pieces.append(piece)
        elif not piece.items or piece.items == ((),):
            pieces.append(piece.opening + _OPENING[piece.opening])
        else:
            inside = ", ".join(_to_depth(item, depth - 1) for item in piece.items) if depth else ELISION
            pieces.append(piece.opening + inside + _OPENING[piece.opening])
    return "".join(pieces)


def _told_apart(names: Sequence[_Name]) -> list[str]:
    """Each name with what it shares with the others left out, where it stands in a bracketed list."""
    if len(names) == 1:
        return [_within(names[0], ROOM)]
    shapes = {tuple(p if isinstance(p, str) else p.opening + str(len(p.items)) for p in one) for one in names}
    if len(shapes) > 1:  # only names of one shape are compared piece by piece
        shown = [_within(name, ROOM) for name in names]
        for depth in range(1, 13):  # what two would share is shown as deep as tells them apart
            count = Counter(shown)
            if len(count) == len(names):
                break
            pairs = zip(names, shown, strict=True)
            shown = [text if count[text] == 1 else _to_depth(name, depth) for name, text in pairs]
        return shown
    texts = [""] * len(names)
    for pieces in zip(*names, strict=True):
        if isinstance(pieces[0], str):
            texts = [text + str(piece) for text, piece in zip(texts, pieces, strict=True)]
            continue
        groups = [piece for piece in pieces if isinstance(piece, _Group)]
        texts = [text + shown for text, shown in zip(texts, _groups_apart(groups), strict=True)]
    return texts


def _groups_apart(groups: Sequence[_Group]) -> list[str]:
    """Bracketed lists of the same length with the items that all share left out."""
    shown: list[list[str]] = [[] for _ in groups]
    for items in zip(*(group.items for group in groups), strict=True):
        if len(set(items)) == 1:
            for one in shown:
                if one[-1:] != [ELISION]:
                    one.append(ELISION)
        else:
            for one, text in zip(shown, _told_apart(items), strict=True):
                one.append(text)
    closing = _OPENING[groups[0].opening]
    return [groups[0].opening + ", ".join(one) + closing for one in shown]


# --- Owners -----------------------------------------------------------------------------------------------------------
# Whose code a kernel is: known by its name and from what its line information names.
#
# What to do about a slow kernel depends on who can change it: own code is rewritten, a library is called another way.
# A test judges the rules on names of libraries from public profiles (``tests/data/kernel_names.csv``).


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose code it is."""

    key: str  # the word for conditions, options and documents: ``cublas``
    title: str  # what people read
    editable: bool = False  # whether the reader can change its code; of others only how they are called

    def __str__(self) -> str:
        """What a selection and a condition look at: ``triton own Triton``."""
        return f"{self.key} {self.title}"


OWNERS: Mapping[str, Owner] = {
    key: Owner(key, title, bool(editable)) for key, title, editable in facts(__file__, "owners.csv")
}
"""Every class by its key, in the order in which they are listed."""

_BY_NAME = grouped(((place, key), name) for key, place, name in facts(__file__, "owner_names.csv"))
# How the name begins, without its namespaces that say nothing, up to the first template argument; and what stands
# anywhere in it: a kernel of cuBLAS or cuFFT may be called `dot_kernel`, what it takes is theirs alone.
_HEADS, _WITHIN = (
    tuple((key, re.compile("|".join(names))) for (place, key), names in _BY_NAME.items() if place == wanted)
    for wanted in ("begins", "holds")
)
_OF_A_LIBRARY = re.compile(r"\(ggml_type\)|\b(?:transformer_engin|apex::)")
_ENTRY = re.compile(r"cutlass\w*::(?:Kernel2?|device_kernel)\b")
_NAMED_BY_LIBRARY = re.compile(r"<\s*cutlass_\w*(?:tensorop|simt|wmma)\w*")
_CONVOLUTION = re.compile(r"fprop|dgrad|wgrad|conv2d|conv3d|bn_stat")
_SILENT = re.compile(
    r"^(?:void |static )|^std::enable_if<.*?>::type |<unnamed>::|\(anonymous namespace\)::|_(?:GLOBAL_|INTERNAL)_\w*::"
)
_BARE = re.compile(r"_(?!Z)\w+$")
"""A name as C has it that begins with an underscore: people name Triton's functions so, nobody CUDA's."""
_OF_ARRAYS = re.compile(r"\((?:CuKernelContext|ROCKernelContext|oneKernelContext)\b")
"""What the array packages of Julia give their own kernels (fill!, broadcasts), which are compiled where they run."""
_OF_WARP = re.compile(r"_cuda_kernel_(?:for|back)ward$")
"""What NVIDIA Warp makes of the reader's own functions, compiled as CUDA."""
_PYTHON = re.compile(r"(?:^|[\s/])(?:python|pypy|ipython)[\d.]*(?:\s|$)")
_LENGTH = re.compile(r"\d+")
_PLAIN = ("own", "triton")
"""Names of one's own: a plain word may be Triton's, or CUDA's with C linkage."""


def owner_of(profile: KernelProfile) -> Owner:
    """Whose code a launch ran."""
    key = _of_name(profile.name or profile.mangled_name)
    if key == "own" and _OF_ARRAYS.search(profile.name):
        key = "library"
    elif key == "library" and profile.lines:
        key = "own"  # what is installed compiled has no line information
    elif key in _PLAIN and profile.name.isidentifier() and not _OF_WARP.search(profile.name):
        # C linkage in a Python program: extensions of C++ are mangled, functions of Triton never are.
        command, launch = profile.session.command_line, profile.launch
        # Triton's programs are rows of warps, and ask for all their shared memory at the launch.
        rows = launch.block[1:] == (1, 1) and not launch.static_shared_memory
        python = profile.lines == "python" or (not profile.lines and rows and _PYTHON.search(command))
        key = "triton" if python else "own" if profile.lines else key
    return OWNERS[key]


def owner_of_name(name: str) -> Owner:
    """Whose code it is as far as the name tells."""
    return OWNERS[_of_name(name)]


def is_doubtful(name: str) -> bool:
    """Whether the name alone leaves open whose code it is."""
    key = _of_name(name)
    return key == "library" or (key in _PLAIN and name.isidentifier())


@lru_cache(maxsize=4096)
def _of_name(name: str) -> str:
    # The name up to its first template argument or parameter, without what says nothing of whose it is.
    if name.startswith("_Z"):
        head = unmangled(name)
    else:
        head, shorter = name, _SILENT.sub("", name)
        while shorter != head:
            head, shorter = shorter, _SILENT.sub("", shorter)
        head = re.split(r"[<(]", head, maxsplit=1)[0]
    if "_xmma_" in head:
        # Kernels of one generator, which cuBLAS, cuDNN and TensorRT share; the end of the name says whose it is.
        if name.startswith("trt_") or "_trt" in name:
            return "tensorrt"
        return "cudnn" if "cudnn" in name or _CONVOLUTION.search(name) else "cublas"
    if _ENTRY.match(head):
        # CUTLASS's entry: what it is instantiated with says who compiled it.
        if "flash::" in name:
            return "attention"
        if "cudnn" in name:
            return "cudnn"
        if _NAMED_BY_LIBRARY.search(name):
            return "cudnn" if _CONVOLUTION.search(name) else "cublas"
        return "library" if re.search(r"\b(?:vllm|flashinfer|tensorrt_llm|trtllm)::", name) else "cutlass"
    if _OF_A_LIBRARY.search(name):
        return "library"
    for key, pattern in _HEADS:
        if pattern.match(head):
            return "tensorrt" if head.endswith("_trt") else key
    for key, pattern in _WITHIN:
        if pattern.search(name):
            return key
    return "triton" if _BARE.match(name) and not _OF_WARP.search(name) else "own"


def unmangled(name: str) -> str:
    """Namespaces and function of a mangled name: ``_ZN3cub12SomethingI…`` is ``cub::Something``."""
    position = 3 if name.startswith("_ZN") else 2
    parts = []
    while length := _LENGTH.match(name, position):
        position = length.end() + int(length[0])
        parts.append(name[length.end() : position])
        if not name.startswith("_ZN"):
            break
    return "::".join(part for part in parts if not part.startswith(("_GLOBAL__N", "_INTERNAL")))
