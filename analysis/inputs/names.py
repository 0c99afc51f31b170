"""Short names of kernels that still tell them apart.

Demangled names of templates run to thousands of characters, and what tells two of them apart is often one number deep
inside. A label keeps the name without its parameters, and of the template arguments those in which kernels of the same
name differ; ``…`` stands for what they share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ELISION = "…"
# Characters up to which the arguments of a name that nothing needs to be told apart from are shown.
ROOM = 110

_CAST = re.compile(r"\((?:unsigned )?(?:bool|char|short|int|long|long long)\)(?=-?\d)")
_OPERATOR = re.compile(r"operator ?(?:\(\)|\[\]|->\*?|<=>|<<=|>>=|<<|>>|<=|>=|<|>)")
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
    heads: dict[str, list[str]] = {}
    split = {name: _split(name) for name in distinct}
    for name, (body, _) in split.items():
        heads.setdefault(_head(body), []).append(name)
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
    return _distinct({name: found[name] for name in distinct})


def label(name: str) -> str:
    """The label of a kernel that is looked at alone, where nobody knows what else its report holds."""
    return labels([name])[name]


def _distinct(found: dict[str, str]) -> dict[str, str]:
    """The labels, with the full name where two kernels would share one."""
    count: dict[str, int] = {}
    for label in found.values():
        count[label] = count.get(label, 0) + 1
    return {name: label if count[label] == 1 else name for name, label in found.items()}


def _split(name: str) -> tuple[str, str]:
    """The name without return type, parameters and the casts of its numbers, and the parameters."""
    end = len(name)
    depth = 0
    for position, character, opens, closes in _brackets(name):
        if opens:
            if depth == 0 and character == "(" and not name.startswith("(anonymous", position):
                end = position
                break
            depth += 1
        elif closes:
            depth -= 1
    body = _CAST.sub("", name[:end].removeprefix("void ").strip())
    return body or name, name[end:]


def _head(body: str) -> str:
    """The text before the first template argument."""
    return next(
        (body[:position] for position, character, opens, _ in _brackets(body) if opens and character == "<"),
        body,
    )


def _brackets(text: str) -> Iterable[tuple[int, str, bool, bool]]:
    """Every bracket with its place; not those of operators: ``operator<``, ``operator->``, ``<unnamed>``."""
    position = 0
    while position < len(text):
        character = text[position]
        if character == "o" and text.startswith("operator", position):
            operator = _OPERATOR.match(text, position)
            position += len(operator[0]) if operator else 8
            continue
        if text.startswith("<unnamed>", position):
            position += 9
            continue
        if character in _OPENING:
            yield position, character, True, False
        elif character in _CLOSING and not (character == ">" and text[position - 1 : position] == "-"):
            yield position, character, False, True
        position += 1


def _parse(text: str) -> _Name:
    """The name as pieces; brackets that do not match are text."""
    stack: list[tuple[str, list[_Name], list[str | _Group]]] = [("", [], [])]
    last = 0
    events = {position: (opens, closes) for position, _, opens, closes in _brackets(text)}
    for position, character in enumerate(text):
        opens, closes = events.get(position, (False, False))
        if not (opens or closes or (character == "," and len(stack) > 1)):
            continue
        opening, items, pieces = stack[-1]
        if closes and _OPENING.get(opening) != character:
            continue
        if text[last:position]:
            pieces.append(text[last:position])
        last = position + 1
        if opens:
            stack.append((character, [], []))
        elif closes:
            items.append(_trimmed(pieces))
            stack.pop()
            stack[-1][2].append(_Group(opening, tuple(items)))
        else:
            items.append(_trimmed(pieces))
            pieces.clear()
    if len(stack) > 1:
        return (text,)
    pieces = stack[0][2]
    return (*pieces, text[last:]) if text[last:] else tuple(pieces)


def _trimmed(pieces: Sequence[str | _Group]) -> _Name:
    first = [
        piece.lstrip() if place == 0 and isinstance(piece, str) else piece
        for place, piece in enumerate(pieces)
    ]
    if first and isinstance(first[-1], str):
        first[-1] = first[-1].rstrip()
    return tuple(piece for piece in first if piece != "")


def _text(name: _Name) -> str:
    """The whole name again."""
    return "".join(
        piece
        if isinstance(piece, str)
        else piece.opening + ", ".join(map(_text, piece.items)) + _OPENING[piece.opening]
        for piece in name
    )


def _within(name: _Name, room: int) -> str:
    """The name whole where it is short, else with its innermost arguments left out, as few as need be."""
    for depth in range(12, -1, -1):
        shown = _to_depth(name, depth)
        if len(shown) <= room or depth == 0:
            return shown
    return _text(name)


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
    if len(set(map(_shape, names))) > 1:
        return [_within(name, ROOM) for name in names]
    texts = [""] * len(names)
    for pieces in zip(*names, strict=True):
        if isinstance(pieces[0], str):
            texts = [text + str(piece) for text, piece in zip(texts, pieces, strict=True)]
            continue
        groups = [piece for piece in pieces if isinstance(piece, _Group)]
        texts = [text + shown for text, shown in zip(texts, _groups_apart(groups), strict=True)]
    return texts


def _shape(name: _Name) -> tuple[str, ...]:
    """What two names must share to be compared piece by piece."""
    return tuple(piece if isinstance(piece, str) else piece.opening + str(len(piece.items)) for piece in name)


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
