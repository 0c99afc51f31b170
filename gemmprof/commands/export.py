"""Write everything in reports as tables: Parquet, CSV or JSON lines.

  gemmprof export my.ncu-rep -o tables/
  gemmprof export 'runs/**/*.ncu-rep' --format dataset -o all/    for gemmprof find
  gemmprof export my.ncu-rep -o s3://bucket/tables                keys and endpoint: AWS_PROFILE, AWS_ENDPOINT_URL …
  gemmprof export my.ncu-rep --format speedscope -o my.speedscope.json
  gemmprof export my.ncu-rep --format perfetto -o my.pftrace

Six tables, joined by their columns `report` and `launch`:

  kernels        one row a launch: family, names, grid, block, registers, duration, NVTX ranges
  metrics        one row a launch and metric: value in base units, unit
  metrics_wide   one row a launch, one column a metric
  samples        one row a sample over time (PmSampling): counter, nanoseconds since the launch began, value
  instructions   one row a SASS instruction, with every metric measured by address
  lines          one row a CUDA line: the sums over its instructions

With `--format dataset` thousands of reports, in folders of any depth, become one data set that `gemmprof find`
searches; a second call reads only what is new or changed.

`speedscope` writes samples as a flame graph (file, function, line, instruction, reason) of each family's longest
launch, for speedscope.app; `perfetto` every launch over time with its NVTX ranges and throughputs, for ui.perfetto.dev.

What was not collected is null. Reports of any size are written slice by slice in bounded memory.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gemmprof.arguments import common
from gemmprof.arguments.parser import DATASET, FORCE, INPUTS, READ_INTO_DATASET, READING_PLACE, values
from gemmprof.base.errors import UsageError
from gemmprof.reports.tables import TABLES

DEFAULT_FOLDER = "gemmprof-tables"
FORMATS = ("parquet", "csv", "jsonl", "dataset", "speedscope", "perfetto")
VIEWER_FILES = {"speedscope": "gemmprof.speedscope.json", "perfetto": "gemmprof.pftrace"}
ARGUMENTS = f"""{INPUTS}
-o, --output PATH       folder to write (default: {DEFAULT_FOLDER}); speedscope and perfetto: file
{FORCE}
--format                file format (default: %(default)s)
--table/tables NAME…    write this table only; may be repeated ({", ".join(TABLES)})
[with --format dataset]
{DATASET}
{READING_PLACE}"""
VALUES = values(READ_INTO_DATASET, format={"choices": FORMATS, "default": FORMATS[0]}, tables=TABLES)


def run(options: argparse.Namespace) -> int:
    """Write the tables; exit code 0, or 2 if some report could not be read."""
    if options.format == "dataset":
        return _write_dataset(options)
    if options.format in VIEWER_FILES:
        return _write_for_viewer(options)
    from gemmprof.analysis.session import selected_reports
    from gemmprof.base.foreign_files import url_of
    from gemmprof.base.system import without_modules
    from gemmprof.reports.tables.export import export_tables

    tables = tuple(dict.fromkeys(options.tables or TABLES))
    folder = Path(options.output or DEFAULT_FOLDER)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "name a folder with -o")
    for name in tables if folder.is_dir() or url_of(folder) else ():
        common.new_output(folder / f"{name}.{options.format}", force=options.force)
    reports, failures = selected_reports(common.chosen_inputs(options), common.selection(options))
    if not reports:
        raise failures[0]
    with without_modules("pandas"):
        exported = export_tables(reports, folder, format=options.format, tables=tables)
    failures = (*failures, *exported.failures)
    common.name_failures(options, failures)
    for file in exported.files:
        common.announce(file)
    return common.exit_code(failures)


def _write_dataset(options: argparse.Namespace) -> int:
    """Bring a data set in line with the reports of folder trees; exit code 2 if some could not be read."""
    if options.tables or options.kernel or options.launch or options.nvtx or options.top:
        fixes = "leave out --table, --kernel, --launch, --nvtx and --top", "or choose --format parquet"
        raise UsageError("a data set holds everything of its reports", *fixes)
    folder = Path(options.output or DEFAULT_FOLDER)
    failed = common.refresh_dataset(folder, common.chosen_inputs(options), options)
    common.announce(folder)
    return common.exit_code(failed)


def _write_for_viewer(options: argparse.Namespace) -> int:
    """Write a file that another viewer opens; exit code 2 if some report could not be read."""
    from gemmprof.reports.tables.viewers import write_perfetto, write_speedscope

    if options.tables:
        fixes = "leave out --table", "or choose --format parquet"
        raise UsageError(f"--format {options.format} writes no tables", *fixes)
    target = common.new_output(options.output or VIEWER_FILES[options.format], force=options.force)
    session = common.load_inputs(options, listed=True)
    write = write_speedscope if options.format == "speedscope" else write_perfetto
    write(session, target)
    common.announce(target)
    return common.read_all(options, session)
