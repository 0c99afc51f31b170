"""An ncu that takes its time: it appends the launches of a recorded report block by block, as the real one does.

It takes ncu's arguments, waits for the job, tells the events of the profiled program, and stops where that would.
``$SLOW_NCU_REPORT`` names the report; its launch n stands for stage n + 1. ``$SLOW_NCU_SECONDS`` is for each launch.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from profiler_fakes import profiling_line

from gemmprof.ncurep import ncu_frame
from gemmprof.ncurep import ncu_messages_pb2 as messages
from gemmprof.profiler.job import Job
from gemmprof.profiler.workload import appears


def parts_of(content: bytes) -> tuple[bytes, list[bytes]]:
    """What stands before the launches of a report (code and names of all of them), and a block for each launch."""

    def read(start: int, end: int) -> bytes:
        return content[start:end]

    _, position = ncu_frame.read_head(read, len(content))
    front, launches, names = [content[:position]], [], []
    for block in ncu_frame.blocks(read, position, len(content)):
        names += block.strings
        if not block.count("kernel"):
            front.append(content[block.start : block.end])
        for item in ncu_frame.items(read, block, len(content)):
            if item.kind == "kernel":
                message = content[item.start : item.end]
                launches.append(ncu_frame.block_bytes([message], kind="kernel", process=item.process))
    table = messages.BlockHeader(strings=messages.StringTable(names=names))
    return b"".join([*front, ncu_frame.framed(table.SerializeToString())]), launches


def main() -> None:
    """Play ncu."""

    def value(option: str) -> Path:
        return Path(sys.argv[sys.argv.index(option) + 1])

    seconds = float(os.environ.get("SLOW_NCU_SECONDS", "0.2"))
    front, launches = parts_of(Path(os.environ["SLOW_NCU_REPORT"]).read_bytes())
    report, log, job_file = value("--export"), value("--log-file"), Path(sys.argv[-1])
    log.write_text("==PROF== Connected to process 1\n")
    if not appears(job_file, run_directory=job_file.parent.parent):
        return
    job = Job.load(job_file)
    report.write_bytes(front)
    for number, task in enumerate(job.tasks):
        if job.should_stop():
            job.emit("stopped")
            break
        job.emit("begin", task, part="profile")
        block = launches[task.stage - 1]
        with report.open("ab") as file, log.open("a") as words:
            time.sleep(seconds / 2)
            file.write(block[: len(block) // 2])
            file.flush()
            time.sleep(seconds / 2)
            file.write(block[len(block) // 2 :])
            words.write(profiling_line(number))
        job.emit("launched", task)
    else:
        job.emit("finished")


if __name__ == "__main__":
    main()
