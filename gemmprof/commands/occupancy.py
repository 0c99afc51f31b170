"""Theoretical occupancy: how many blocks and warps fit one SM, why, and what would raise it.

  gemmprof occupancy --threads 1024 --regs 37 --smem 8192
  gemmprof occupancy --threads 256 --regs 128 --gpu H100 -o curves.svg
  gemmprof occupancy -o calculator.html
  nvcc -Xptxas -v … 2>&1 | gemmprof occupancy --ptxas - --threads 256
  gemmprof occupancy --cubin kernel.cubin --threads 256
  gemmprof occupancy --stage 5
  gemmprof occupancy report.ncu-rep

Without --arch or --gpu the answer is for the GPU of this machine, or for every architecture if there is none.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from gemmprof.analysis.occupancy.calculator import Occupancy, occupancy, parse_size
from gemmprof.arguments import common
from gemmprof.arguments.parser import FORCE, JSON, SELECTION, TRUST, values
from gemmprof.base.buckets import write_text
from gemmprof.base.errors import DeviceError, OccupancyError, RunError, UsageError
from gemmprof.base.foreign_files import read_text
from gemmprof.gpu.arch import LIMITS, Product, find_product, parse_compute_capability
from gemmprof.model import KernelProfile

EXIT_OK, EXIT_FINDING = 0, 1
Answer = Occupancy | OccupancyError


def size(text: str) -> int:
    """Bytes, as a plain number or with k, KB or KiB for units of 1,024."""
    try:
        return parse_size(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; write 49152 or 48k") from None


ARGUMENTS = f"""
inputs REPORT*          .ncu-rep files or run directories
{TRUST}{SELECTION}
[the kernel]
-t, --threads N>=1      threads per block
-r, --regs N>=0         registers per thread, as ptxas reports them
-s, --smem BYTES        shared memory per block, static plus dynamic (with --ptxas and --cubin: dynamic only); 48k is
                        49152
--barriers N>=0         barriers per block (default 1)
--cluster N>=1          blocks per cluster (default 1)
--carveout BYTES        shared memory of an SM (default: the largest)
[the kernel's numbers from elsewhere]
--ptxas FILE            output of nvcc -Xptxas -v; - reads standard input
--cubin FILE            cubin, object, library or executable (needs cuobjdump)
--stage STAGE           a stage, by number or name, of the newest run here, else of the recorded one
[the GPU]
--arch CC…              compute capability: 8.6 or sm_86; repeatable
--gpu NAME…             product name, for example H100; repeatable
[]
{JSON}
[output]
-o, --output FILE       write instead of printing: .html the interactive calculator, .svg .png .pdf the curves of
                        occupancy over threads, registers and shared memory
{FORCE}"""
VALUES = values(smem=size, carveout=size)


def run(options: argparse.Namespace) -> int:
    """Answer in the way that the options ask for."""
    named = [name for name in ("ptxas", "cubin", "stage") if getattr(options, name) is not None]
    if len(named) + bool(options.inputs) > 1:
        raise UsageError("give one source only: report files, --ptxas, --cubin or --stage")
    if options.ptxas is not None or options.cubin is not None:
        return _from_build(options)
    if options.inputs:
        return _from_reports(options)
    if options.stage is not None:
        return _from_stage(options)
    given = [options.threads is not None, options.regs is not None]
    if _is_page(options) and not any(given):
        # The page alone: it opens with a plain configuration and is meant to be played with.
        options.threads, options.regs = 256, 32
        _write(options, _answers(options, _targets(options)))
        return EXIT_OK
    if not all(given):
        raise UsageError(
            "the kernel is not described: --threads and --regs are needed",
            "gemmprof occupancy --threads 256 --regs 64 --smem 16k",
            "or name a report, or --ptxas FILE, --cubin FILE, --stage STAGE",
        )
    return _show(options)


def _targets(options: argparse.Namespace, default: Sequence[Product] = ()) -> list[Product]:
    """The GPUs to answer for; a product without a name stands for its architecture."""
    chosen = [Product("", parse_compute_capability(text)) for text in options.arch]
    chosen += [find_product(name) for name in options.gpu]
    return list(dict.fromkeys(chosen or default or _present() or [Product("", pair) for pair in LIMITS]))


def _present() -> list[Product]:
    """The GPUs of this machine, one of each kind; empty if there are none."""
    smi = "nvidia-smi" + (".exe" if os.name == "nt" else "")  # as `shutil.which` says it, which loads slowly
    if not any(os.access(os.path.join(folder, smi), os.X_OK) for folder in os.get_exec_path()):  # noqa: PTH118
        return []
    from gemmprof.gpu.devices import list_gpus, visible_gpus

    try:
        gpus = visible_gpus(list_gpus())
    except DeviceError:
        return []
    kinds = {(gpu.name, gpu.compute_capability): gpu for gpu in gpus if gpu.compute_capability in LIMITS}
    return [_named(gpu.name, gpu.compute_capability) for gpu in kinds.values()]


def _named(name: str, compute_capability: tuple[int, int], sm_count: int | None = None) -> Product:
    """A GPU as a driver or report names it, with the SM count of our table where only that knows it."""
    try:
        product = find_product(name)
        known = product.sm_count if product.compute_capability == compute_capability else None
    except UsageError:
        known = None
    return Product(name, compute_capability, known if sm_count is None else sm_count)


def _answers(options: argparse.Namespace, targets: Sequence[Product]) -> list[tuple[Product, Answer]]:
    """The calculator's answer for each GPU. What is impossible on one of several is an answer too."""
    answers: list[tuple[Product, Answer]] = []
    for target in targets:
        try:
            answer: Answer = occupancy(
                target.compute_capability,
                options.threads,
                options.regs,
                options.smem or 0,
                shared_memory_config=options.carveout,
                block_barriers=1 if options.barriers is None else options.barriers,
                cluster_size=1 if options.cluster is None else options.cluster,
            )
        except OccupancyError as error:
            answer = error
        answers.append((target, answer))
    refused = [answer for _, answer in answers if isinstance(answer, OccupancyError)]
    if len(refused) == len(answers):
        first = refused[0]
        everywhere = f" (none of the {len(refused)} asked for allows it)" if len(refused) > 1 else ""
        raise OccupancyError(first.message + everywhere, *first.remedies, found=first.found)
    return answers


def _show(options: argparse.Namespace, default: Sequence[Product] = ()) -> int:
    """Print the answers, and write the files that were asked for; 1 if the kernel cannot run on any of the GPUs."""
    answers = _answers(options, _targets(options, default))
    solved = [(target, answer) for target, answer in answers if isinstance(answer, Occupancy)]
    if options.output is not None:
        _write(options, answers)
    if options.json or options.output is None:
        from gemmprof.reports.documents.of_occupancy import calculated
        from gemmprof.reports.terminal.occupancy import answer_parts

        common.answer(options, lambda: calculated(answers), lambda _: answer_parts(answers))
    return EXIT_OK if any(answer.blocks_per_sm for _, answer in solved) else EXIT_FINDING


def _is_page(options: argparse.Namespace) -> bool:
    return options.output is not None and options.output.lower().endswith(".html")


def _write(options: argparse.Namespace, answers: Sequence[tuple[Product, Answer]]) -> None:
    path = common.new_output(options.output, force=options.force)
    solved = [answer for _, answer in answers if isinstance(answer, Occupancy)]
    if _is_page(options):
        from gemmprof.reports.pages.occupancy_page import page_html, preset

        # The page opens on one architecture; of many the newest that data centres have is as good as any.
        first = next((answer for answer in solved if answer.compute_capability == (9, 0)), solved[0])
        write_text(path, page_html(preset(first)))
    else:
        from gemmprof.reports.figures.plots import save_plot

        save_plot(solved, path)
    common.announce(path)


def _from_build(options: argparse.Namespace) -> int:
    from gemmprof.analysis.occupancy.configurations import built_kernels, read_cubin, read_ptxas

    if options.threads is None:
        raise UsageError("a build does not know the block size", "add --threads N")
    for name in ("regs", "cluster", "output"):
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} does not go with a whole build: --threads is all it needs")
    asked = options.arch or options.gpu
    targets = [target.compute_capability for target in _targets(options)] if asked else []
    kernels = built_kernels(
        read_cubin(options.cubin) if options.ptxas is None else read_ptxas(_text(options.ptxas)),
        options.threads,
        dynamic_shared_memory=options.smem or 0,
        shared_memory_config=options.carveout,
        block_barriers=options.barriers,
        architectures=targets,
        default_architecture=targets[0] if targets else None,
    )
    from gemmprof.reports.documents.of_occupancy import built
    from gemmprof.reports.terminal.occupancy import build_parts

    common.answer(options, lambda: built(kernels), lambda _: build_parts(kernels, options.threads))
    return EXIT_OK


def _text(name: str) -> str:
    if name == "-":
        return sys.stdin.read()
    try:
        return read_text(name, errors="replace")
    except OSError as error:
        raise UsageError(f"{name} cannot be read", found=error.strerror or str(error)) from error


def _from_stage(options: argparse.Namespace) -> int:
    """A stage of the ladder with the numbers that its recorded launch had."""
    from gemmprof.analysis.occupancy.configurations import recorded_launch
    from gemmprof.runs.directory import load_recorded_run, load_run, newest_run_directory

    newest = newest_run_directory()
    chosen = load_recorded_run() if newest is None else load_run(newest)
    recorded = "the recorded run that ships with gemmprof"
    where = recorded if newest is None else f"the newest run here: {newest}"
    record = chosen.find_record(options.stage)
    print(f"Stage {record.stage.number} ({record.stage.title}) of {where}", file=sys.stderr)
    try:
        return _show_launch(options, recorded_launch(chosen, record))
    except RunError:
        # Built but not profiled: the build knows all but the block size.
        if options.threads is None or record.registers_per_thread is None:
            raise
    if options.regs is None:
        options.regs = record.registers_per_thread
    if options.smem is None:
        options.smem = record.static_shared_memory
    return _show(options, [_named(chosen.info.device, chosen.info.compute_capability)])


def _show_launch(options: argparse.Namespace, profile: KernelProfile) -> int:
    """One recorded launch as if its numbers had been typed; what was typed stands in their place.

    The carve-out is what the driver chose for just this launch and GPU: it counts where nothing else was typed.
    """
    from gemmprof.analysis.occupancy.of_launch import of_launch

    launched = of_launch(profile)
    if launched is None:
        raise UsageError(f"the launch of {profile.function_name} does not say what it took")
    recorded = {
        "threads": launched.threads_per_block,
        "regs": launched.registers_per_thread,
        "smem": launched.shared_memory_per_block,
        "barriers": launched.block_barriers,
    }
    if not (options.arch or options.gpu):
        recorded["cluster"] = launched.cluster_size
        if all(getattr(options, name) is None for name in recorded):
            recorded["carveout"] = launched.shared_memory_config
    for name, value in recorded.items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    device = profile.device
    return _show(options, [_named(device.name, device.compute_capability, device.sm_count)])


def _from_reports(options: argparse.Namespace) -> int:
    """Theoretical beside achieved occupancy of the launches in the reports, and why they differ."""
    for name in ("threads", "regs", "smem", "output", "carveout", "barriers", "cluster", "arch", "gpu"):
        if getattr(options, name) not in (None, []):
            own = f"--{name} does not go with a report, which has numbers of its own"
            raise UsageError(own, "leave out the report, or the option")
    session = common.load_inputs(options, listed=True)
    from gemmprof.reports.documents.of_occupancy import profiled
    from gemmprof.reports.terminal.occupancy import launch_parts

    common.answer(options, lambda: profiled(session), lambda width: launch_parts(session, width))
    return common.exit_code(session.failures)
