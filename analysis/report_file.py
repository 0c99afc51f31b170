"""Reads Nsight Compute reports: any ``.ncu-rep`` or ``.ncu-repz``, also compressed with xz, gzip or zstd.

The frame and all values are decoded here in Python (`report_frame`, `report_messages`). Only what the file does not hold
comes from NVIDIA's ``ncu_report``: disassembled SASS, the source line of an instruction, units of metrics. It runs in a
process of its own (`report_worker`), and sees no file whose frame and messages have not been walked to the end first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

from gemmprof import metrics as m
from gemmprof.analysis import report_source
from gemmprof.analysis.report_frame import Frame, damaged, open_frame
from gemmprof.analysis.report_messages import Result, ResultDecoder, session_details
from gemmprof.analysis.report_source import Module
from gemmprof.analysis.report_wire import WireError
from gemmprof.analysis.report_worker import (
    NativeReader,
    NativeReaderError,
    NativeReaderMissing,
    native_reader,
)
from gemmprof.errors import ReportError
from gemmprof.model import Instruction, KernelProfile, SessionDetails, Source
from gemmprof.toolchain import ncu_python_directory


def read_report(
    path: str | os.PathLike[str],
    *,
    source: bool = True,
    units: bool = True,
    instances: bool | Collection[str] = True,
) -> tuple[KernelProfile, ...]:
    """Every profiled launch of a report, in the order of profiling, complete in plain Python values.

    Args:
        path: the report; its compression is told by its content.
        source: also disassemble the kernels and read the CUDA sources (about 0.4 s for the first kernel).
        units: also ask for the units of the metrics.
        instances: instance values of all metrics, of none, or of the named ones.

    Raises:
        ReportError: if the file is missing, of another kind, truncated or damaged, or if the native reader fails on it.
    """
    with ReportReader(path) as reader:
        return tuple(reader.profiles(source=source, units=units, instances=instances))


class ReportReader:
    """An open report, read one launch at a time: memory does not grow with the number of launches.

    Use it in a ``with`` statement.

    Raises:
        ReportError: if the file is missing, of another kind, or its frame is truncated or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.frame = open_frame(path)
        try:
            self._sessions = _sessions(self.frame)
        except BaseException:
            self.frame.close()
            raise

    def __enter__(self) -> ReportReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.frame.close()

    def __len__(self) -> int:
        """Number of profiled launches."""
        return len(self.frame.workloads)

    def profiles(
        self,
        *,
        source: bool | Callable[[KernelProfile], bool] = False,
        units: bool = False,
        instances: bool | Collection[str] = True,
        only: Collection[int] | None = None,
    ) -> Iterator[KernelProfile]:
        """The profiled launches in the order of profiling.

        Args:
            source: also SASS and CUDA sources; or a function that says for which launches.
            units: also units of the metrics. All profiles share one mapping, which holds the metrics met so far.
            instances: instance values of all metrics, of none, or of the named ones.
            only: indexes of the launches to read; None for all.

        Raises:
            ReportError: where damage is met, after the launches before it; or if the native reader fails.
        """
        if source and not isinstance(instances, bool):
            instances = {*instances, m.FUNCTION_PCS, m.INSTRUCTIONS_BY_ADDRESS}
        elif source and not instances:
            instances = {m.FUNCTION_PCS, m.INSTRUCTIONS_BY_ADDRESS}
        native = _Native(self.frame)
        if source or units:
            native.open()  # loads while this process decodes
        decoder = ResultDecoder(self.path, self.frame.strings, instances)
        sources = _Sources(self.frame, native)
        known_units: dict[str, str] = {}
        for index, item in enumerate(self.frame.workloads):
            if only is not None and index not in only:
                continue
            session = self._sessions.get(item.process) or SessionDetails()
            try:
                result = decoder.result(self.frame.read(item.start, item.end), item.kind, index, session)
            except WireError as error:
                raise damaged(self.path, f"launch {index} cannot be read", str(error)) from None
            profile = result.profile
            if source(profile) if callable(source) else source:
                profile = replace(profile, source=sources.of(result))
            if units:
                native.add_units(profile, known_units)
                profile = replace(profile, units=known_units)
            yield profile


def _sessions(frame: Frame) -> dict[int, SessionDetails]:
    try:
        return {process: session_details(data) for process, data in frame.sessions.items()}
    except WireError as error:
        raise damaged(frame.path, "the facts of its session cannot be read", str(error)) from None


class _Native:
    """The native reader on one report, falling back to the module of the installed ncu where the package fails."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.reader: NativeReader = native_reader()

    def open(self) -> None:
        """Start loading the report."""
        self.reader.open(self.frame.plain_path)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of the native reader, which must see as many launches as the frame does.

        Raises:
            ReportError: if it cannot be had.
        """
        try:
            if self.reader.too_large:
                self.open()
            answer = self.reader.ask(request)
            problem = self._problem(answer)
        except NativeReaderMissing as error:
            problem = str(error)
        except NativeReaderError as error:
            raise self._error(str(error)) from None
        if not problem:
            return answer
        folder = ncu_python_directory()
        if folder is None or self.reader.module_directory:
            raise self._error(problem)
        self.reader = native_reader(str(folder))
        self.open()
        try:
            answer = self.reader.ask(request)
        except NativeReaderError as error:
            raise self._error(f"{problem}; with the module in {folder}: {error}") from None
        if second := self._problem(answer):
            raise self._error(f"{problem}; with the module in {folder}: {second}")
        return answer

    def _problem(self, answer: dict[str, Any]) -> str:
        seen, there = int(answer.get("actions", 0)), len(self.frame.workloads)
        return "" if seen == there else f"ncu_report sees {seen} of its {there} launches"

    def _error(self, found: str) -> ReportError:
        return ReportError(
            f"{self.frame.path} cannot be read by Nsight Compute's own library",
            found=found,
            remedies=[
                "if a newer ncu wrote it: `pip install --upgrade ncu-report`, or put that ncu on PATH",
                "if it is damaged: copy or record the report again",
            ],
        )

    def add_units(self, profile: KernelProfile, known: dict[str, str]) -> None:
        """Ask for the units of those metrics of this launch that are not in ``known`` yet."""
        names = [name for name in {**profile.metrics, **profile.instances} if name not in known]
        if names:
            known.update(dict.fromkeys(names, ""))
            known.update(self.ask({"units": {str(profile.index): names}})["units"])


class _Sources:
    """Sources of the kernels of one report; launches of one kernel share them."""

    def __init__(self, frame: Frame, native: _Native) -> None:
        self.frame = frame
        self.native = native
        self.modules: dict[int, Module] = {}
        self.known: dict[tuple[int, str, int, int], Source] = {}

    def of(self, result: Result) -> Source:
        profile, reference = result.profile, result.source_reference
        if profile.workload != "kernel" or not reference:
            return Source()
        if reference not in self.modules:
            try:
                self.modules.update(report_source.modules(self.frame, [reference]))
            except WireError as error:
                raise damaged(self.frame.path, "the code of a kernel cannot be read", str(error)) from None
            if reference not in self.modules:
                raise damaged(
                    self.frame.path,
                    f"the code of launch {profile.index} is missing",
                    f"no cubin {reference:#x} for {profile.function_name}",
                )
        module = self.modules[reference]
        base, pcs = report_source.addresses(profile, module)
        key = (reference, profile.mangled_name, base, len(pcs))
        if key not in self.known:
            self.known[key] = self._read(profile, module, base, pcs)
        return self.known[key]

    def _read(self, profile: KernelProfile, module: Module, base: int, pcs: list[int]) -> Source:
        if not pcs:
            return Source(files=module.files, function_address=base)
        answer = self.native.ask({"source": [{"action": profile.index, "pcs": pcs}]})["source"][0]
        if answer["name"] != profile.function_name:
            raise self.native._error(f"launch {profile.index} is {answer['name']!r} there")
        files = answer["files"]
        instructions = tuple(
            Instruction(
                address=pc,
                sass=sass.strip(),
                file=files[line[0]] if line else None,
                line=line[1] if line else None,
            )
            for pc, sass, line in zip(pcs, answer["sass"], answer["lines"], strict=True)
        )
        return Source(instructions=instructions, files=module.files, function_address=base)
