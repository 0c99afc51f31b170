"""Several GPUs behind one queue: whatever happens to one costs one request, and that one is tried elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

from gemmprof.base.errors import DeviceError
from gemmprof.base.progress import Progress
from gemmprof.children.line_worker import LineWorker
from gemmprof.profiler.site import CRASHED, Answer, LocalPlaces, Request, Work


class Notes(Progress):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


WORK = Work("fake_gpu", {}, "the fake")


def requests(count: int, seconds: float = 20) -> list[Request]:
    return [Request({"part": "verify", "stage": stage, "problem": {}}, seconds) for stage in range(count)]


def ask(places: LocalPlaces, asked: list[Request]) -> list[Answer]:
    return [future.result(60) for future in [places.submit(request) for request in asked]]


def test_work_is_shared_and_every_answer_names_its_gpu(plan: Any, cards: Any) -> None:
    with LocalPlaces(WORK, cards[:2], Progress()) as places:
        assert places.facts == {"device": "NVIDIA Fake", "architecture": "9.0"}
        answers = ask(places, requests(60))
    assert [answer.status for answer in answers] == ["verified"] * 60
    assert {answer.card for answer in answers} == set(cards[:2])
    assert plan.answered(0) + plan.answered(1) == 60 and min(plan.answered(0), plan.answered(1)) >= 15


def test_answers_are_the_same_on_one_gpu_and_on_three(plan: Any, cards: Any) -> None:
    records = []
    for count in (1, 3):
        with LocalPlaces(WORK, cards[:count], Progress()) as places:
            records.append([answer.record for answer in ask(places, requests(20))])
    assert records[0] == records[1]


def test_a_child_that_dies_costs_nothing_where_another_gpu_takes_over(plan: Any, cards: Any) -> None:
    plan.tell(0, "die")
    with LocalPlaces(WORK, cards[:2], Progress()) as places:
        answers = ask(places, requests(30))
        assert set(places.cards) == set(cards[:2])  # it was started again
    assert [answer.status for answer in answers] == ["verified"] * 30


def test_a_request_that_two_gpus_lose_is_listed_as_crashed(plan: Any, cards: Any) -> None:
    for gpu in range(3):
        plan.tell(gpu, "die-7")
    with LocalPlaces(WORK, cards, Progress()) as places:
        answers = ask(places, requests(20))
    assert [n for n, answer in enumerate(answers) if answer.status == CRASHED] == [7]
    assert "exit code 9" in answers[7].record["detail"]


def test_a_gpu_that_is_taken_away_is_left_out(plan: Any, cards: Any) -> None:
    notes = Notes()
    with LocalPlaces(WORK, cards[:2], notes) as places:
        ask(places, requests(4))
        plan.tell(1, "gone")
        answers = ask(places, requests(30))
        assert [answer.status for answer in answers] == ["verified"] * 30
        assert places.cards == (cards[0],)
    assert notes.texts == ["GPU 1 is left out: no CUDA-capable device is detected"]


def test_a_gpu_that_hangs_holds_nobody_up(plan: Any, cards: Any) -> None:
    plan.tell(0, "hang")
    with LocalPlaces(WORK, cards[:2], Progress()) as places:
        answers = ask(places, requests(30, seconds=1.5))
    assert [answer.status for answer in answers] == ["verified"] * 30


def test_one_that_was_never_there_does_not_keep_the_others_waiting(plan: Any, cards: Any) -> None:
    plan.tell(0, "absent")
    with LocalPlaces(WORK, cards[:2], Progress()) as places:
        answers = ask(places, requests(6))
    assert {answer.card for answer in answers} == {cards[1]}


def test_without_any_gpu_there_is_an_error_with_what_it_said(plan: Any, cards: Any) -> None:
    plan.tell(0, "absent")
    with (
        pytest.raises(DeviceError, match="cannot use a GPU") as error,
        LocalPlaces(WORK, cards[:1], Progress()),
    ):
        pass
    assert "no CUDA-capable device" in error.value.found and error.value.remedies


def test_when_the_last_gpu_goes_what_waits_is_told(plan: Any, cards: Any) -> None:
    with LocalPlaces(WORK, cards[:1], Progress()) as places:
        ask(places, requests(1))
        plan.tell(0, "gone")
        futures = [places.submit(request) for request in requests(5)]
        wait(futures, 30)
        assert futures[0].result().status == CRASHED
        for future in futures[1:]:
            assert isinstance(future.exception(), DeviceError)
        assert isinstance(places.submit(requests(1)[0]).exception(1), DeviceError)


def test_a_single_gpu_tries_again_and_goes_on(plan: Any, cards: Any) -> None:
    plan.tell(0, "die-3")
    with LocalPlaces(WORK, cards[:1], Progress()) as places:
        answers = ask(places, requests(6))
    assert [answer.status for answer in answers] == [*["verified"] * 3, CRASHED, *["verified"] * 2]


def test_a_gpu_that_is_needed_elsewhere_leaves_after_the_request_at_hand(plan: Any, cards: Any) -> None:
    with LocalPlaces(WORK, cards[:2], Progress()) as places:
        futures = [places.submit(request) for request in requests(20)]
        places.leave(cards[0])
        before = plan.answered(0)
        assert [future.result(90).status for future in futures] == ["verified"] * 20
        assert plan.answered(0) == before and places.cards == (cards[1],)


def test_leaving_does_not_wait_for_a_request(plan: Any, cards: Any, wait_until: Any) -> None:
    plan.tell(0, "hang")
    with LocalPlaces(WORK, cards[:1], Progress()) as places:
        places.submit(requests(1, seconds=500)[0])
        wait_until(lambda: (plan.folder / "GPU-0").read_text() == "")
        started = time.monotonic()
    assert time.monotonic() - started < 30


def test_an_orphan_ends_in_the_middle_of_a_request(tmp_path: Path, wait_until: Any) -> None:
    """A master that is killed leaves nobody on the GPU."""
    child = tmp_path / "child.py"
    child.write_text(
        "import os, pathlib, sys, time\nfrom gemmprof.children.line_worker import serve\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid()))\n"
        "serve(lambda request: time.sleep(600))\n"
    )
    master = subprocess.Popen(
        [sys.executable, "-c", "import sys; from gemmprof.children.line_worker import LineWorker\n"
         f"LineWorker([sys.executable, {str(child)!r}], name='x', own_group=True).ask({{}}, 500)"],
    )  # fmt: skip
    wait_until(lambda: (tmp_path / "pid").exists() and bool((tmp_path / "pid").read_text()))
    pid = int((tmp_path / "pid").read_text())
    master.send_signal(signal.SIGKILL)
    master.wait()

    def ended() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"

    wait_until(ended)


def test_a_child_has_its_own_environment(tmp_path: Path) -> None:
    script = "import os, sys; sys.stdin.readline(); print('{\"seen\": \"' + os.environ['SEEN'] + '\"}', flush=True)"
    worker = LineWorker([sys.executable, "-c", script], name="x", environment={"SEEN": "one"})
    assert worker.ask({}, 20) == {"seen": "one"}
    worker.stop()
