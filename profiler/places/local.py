"""The GPUs of this machine: a thread and a child for each, all fed from one queue."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from gemmprof.base.progress import Progress
from gemmprof.model import Card
from gemmprof.profiler.places.gpu_child import ChildFailed, GpuChild
from gemmprof.profiler.site import CRASHED, Answer, Request, Work, cancelled, no_place

JOIN_SECONDS = 15.0


@dataclass(slots=True)
class _Item:
    """A request on its way."""

    request: Request
    future: Future[Answer] = field(default_factory=Future)
    tried: Card | None = None
    """The GPU that lost it the first time."""


class LocalPlaces:
    """Children on GPUs of this machine.

    Args:
        pinned: show each child its GPU alone, by UUID: an index counts differently in CUDA and nvidia-smi. Where only
            the GPU that CUDA uses first is wanted, nothing needs to be said.
        keep_open: file handles that the children inherit.
    """

    def __init__(
        self,
        work: Work,
        cards: Sequence[Card],
        progress: Progress,
        *,
        pinned: bool = True,
        keep_open: Sequence[int] = (),
    ) -> None:
        self._work, self._progress = work, progress
        self._children = [GpuChild(work, card, pinned=pinned, keep_open=keep_open) for card in cards]
        self._alive: dict[Card, GpuChild] = {}
        self._starting = len(self._children)
        self._given_up: set[Card] = set()
        self._items: deque[_Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._reasons: list[str] = []
        self._facts: Mapping[str, Any] = {}
        self._threads = [
            threading.Thread(target=self._serve, args=(child,), name=child.card.label, daemon=True)
            for child in self._children
        ]

    def __enter__(self) -> LocalPlaces:
        """Start the children; returns as soon as one is ready, the others join.

        Raises:
            DeviceError: none gets ready.
        """
        for thread in self._threads:
            thread.start()
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._facts or not self._starting)
        except BaseException:
            self.__exit__()
            raise
        if not self._facts:
            raise no_place(self._work, self._reasons[0] if self._reasons else "")
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for child in self._children:
            child.kill()  # its thread may be waiting for an answer
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(JOIN_SECONDS)

    @property
    def cards(self) -> tuple[Card, ...]:
        """The GPUs that answer at present."""
        with self._changed:
            return tuple(self._alive)

    @property
    def width(self) -> int:
        """One request a GPU."""
        return max(1, len(self._alive))

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the first child said of its GPU."""
        return self._facts

    def submit(self, request: Request) -> Future[Answer]:
        """Queue a request."""
        item = _Item(request)
        with self._changed:
            if not self._alive and not self._starting:
                item.future.set_exception(no_place(self._work, "; ".join(self._reasons)))
            else:
                self._items.append(item)
                self._changed.notify_all()
        return item.future

    def cancel_waiting(self) -> None:
        """Cancel the requests that no GPU has begun."""
        with self._changed:
            for item in list(self._items):
                if cancelled(item.future):
                    self._items.remove(item)

    def leave(self, card: Card) -> None:
        """Give a GPU up after the request at hand, and wait until its child has ended."""
        with self._changed:
            self._given_up.add(card)
            self._changed.notify_all()
            self._changed.wait_for(lambda: card not in self._alive)

    def _serve(self, child: GpuChild) -> None:
        """The life of one place."""
        started = self._start(child)
        with self._changed:
            self._starting -= 1
            if started and not self._closed:
                self._alive[child.card] = child
                self._facts = self._facts or child.facts
            self._changed.notify_all()
        while started and (item := self._take(child)) is not None:
            record = child.ask(item.request.local, item.request.seconds)
            if self._closed:
                break
            # A new child shows whether the request was at fault, or the GPU.
            started = child.running or self._start(child)
            self._settle(item, record, child.card, sound=started)
        child.stop()
        with self._changed:
            self._alive.pop(child.card, None)
            self._fail_waiting()
            self._changed.notify_all()

    def _start(self, child: GpuChild) -> bool:
        try:
            child.start()
        except ChildFailed as error:
            if not self._closed:
                self._reasons.append(f"{child.card.label}: {error}")
                if len(self._children) > 1:
                    self._progress.note(f"{child.card.label} is left out: {error}")
            return False
        return True

    def _take(self, child: GpuChild) -> _Item | None:
        """The next request for this place, as soon as there is one; None when there is nothing more to do here."""
        with self._changed:
            while not self._closed and child.card not in self._given_up:
                others = len(self._alive) + self._starting > 1
                for item in self._items:
                    if item.tried == child.card and others:
                        continue  # it is for another one
                    self._items.remove(item)
                    if item.tried is not None or item.future.set_running_or_notify_cancel():
                        return item
                    break
                else:
                    self._changed.wait()
            return None

    def _settle(self, item: _Item, record: Mapping[str, Any], card: Card, *, sound: bool) -> None:
        """Hand out an answer, or a request that its GPU lost to another one."""
        lost = record.get("status") == CRASHED or not sound
        with self._changed:
            if not sound:
                self._alive.pop(card, None)
            elsewhere = len(self._alive) - (card in self._alive) + self._starting
            if lost and item.tried is None and elsewhere:
                item.tried = card
                self._items.appendleft(item)
                self._changed.notify_all()
                return
        item.future.set_result(Answer(record, card))

    def _fail_waiting(self) -> None:
        """Answer what nobody is left for."""
        if self._alive or self._starting:
            return
        for item in self._items:
            if item.tried is not None or item.future.set_running_or_notify_cancel():
                item.future.set_exception(no_place(self._work, "; ".join(self._reasons) or "it was ended"))
        self._items.clear()
