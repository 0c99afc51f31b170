"""The GPUs of this machine: a thread and a child for each, all fed from one queue."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from gemmprof.base.progress import Progress
from gemmprof.model import Card
from gemmprof.profiler.places.gpu_child import ChildFailed, GpuChild
from gemmprof.profiler.site import CRASHED, Answer, NotBegun, Request, Work, no_place


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
        self._starting = len(self._children)
        self._alive: dict[Card, None] = {}
        self._free: list[GpuChild] = []
        self._given_up: set[Card] = set()
        self._changed = threading.Condition()
        self._closed = self._ending = False
        self._reasons: list[str] = []
        self._facts: Mapping[str, Any] = {}
        self._pool = ThreadPoolExecutor(len(self._children))

    def __enter__(self) -> LocalPlaces:
        """Start the children; returns as soon as one is ready, the others join.

        Raises:
            DeviceError: none gets ready.
        """
        for child in self._children:
            self._pool.submit(self._begin, child)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._facts or not self._starting)
                if not self._facts:
                    raise no_place(self._work, self._reasons[0] if self._reasons else "")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for child in self._children:
            child.kill()  # its thread may be waiting for an answer
        self._pool.shutdown(cancel_futures=True)
        for child in self._children:
            child.stop()

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
        """Queue a request. Its future raises `NotBegun`, or DeviceError if no GPU is left."""
        return self._pool.submit(self._answer, request)

    def cancel_waiting(self) -> None:
        """Begin no more requests; those that a GPU has begun are answered as ever."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()

    def leave(self, card: Card) -> bool:
        """Give a GPU up after the request at hand, and wait until its child has ended; False if there is no other."""
        with self._changed:
            if not (self._alive.keys() - {card} or self._starting):
                return False
            self._given_up.add(card)
            for child in [child for child in self._free if child.card == card]:
                self._end(child)
            self._changed.wait_for(lambda: card not in self._alive)
            return True

    def _begin(self, child: GpuChild) -> None:
        """Have a child ready for its first request."""
        started = self._started(child)
        with self._changed:
            self._starting -= 1
            if started:
                self._alive[child.card] = None
                self._facts = self._facts or child.facts
            self._put_back(child, sound=started)

    def _started(self, child: GpuChild) -> bool:
        try:
            if not self._closed:
                child.start()
        except ChildFailed as error:
            if not self._closed:
                self._reasons.append(f"{child.card.label}: {error}")
                if len(self._children) > 1:
                    self._progress.note(f"{child.card.label} is left out: {error}")
            return False
        return not self._closed

    def _answer(self, request: Request) -> Answer:
        """The answer of a GPU; a request that it loses is tried once more on another one."""
        lost: GpuChild | None = None
        while True:
            child = self._taken(lost)
            record = child.ask(request.local, request.seconds)
            # A new child shows whether the request was at fault, or the GPU.
            sound = child.running or self._started(child)
            with self._changed:
                self._put_back(child, sound=sound)
                others = len(self._alive.keys() - {child.card}) + self._starting
            if lost or not others or (sound and record.get("status") != CRASHED):
                return Answer(record, child.card)
            lost = child

    def _taken(self, lost: GpuChild | None) -> GpuChild:
        """A free child, as soon as there is one; another than the one that lost the request.

        Raises:
            NotBegun: everything is ended.
            DeviceError: no GPU is left.
        """
        with self._changed:
            while not self._closed and (lost or not self._ending):
                if not self._alive and not self._starting:
                    raise no_place(self._work, "; ".join(self._reasons) or "it was ended")
                others = len(self._alive) + self._starting > 1
                for child in self._free:
                    if child is not lost or not others:
                        self._free.remove(child)
                        return child
                self._changed.wait()
        raise NotBegun

    def _put_back(self, child: GpuChild, *, sound: bool) -> None:
        """Let others have a child, unless it is gone, or its GPU is needed elsewhere."""
        if sound and child.card not in self._given_up:
            self._free.append(child)
        else:
            self._end(child)
        self._changed.notify_all()

    def _end(self, child: GpuChild) -> None:
        child.stop()
        self._alive.pop(child.card, None)
        if child in self._free:
            self._free.remove(child)
