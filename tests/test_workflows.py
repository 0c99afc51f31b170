"""The workflows of docs/, executed as far as they go without their servers: with a recorded GPU, compiler and git."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import in_process
import pytest
from recorded_data import DATA
from scale import few

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = ROOT / "docs" / "workflows"


def commands(name: str, job: str) -> list[str]:
    """The shell commands of one job, as GitHub (``run:``) or GitLab (``script:``) would run them."""
    text = (WORKFLOWS / name).read_text(encoding="utf-8")
    begin = re.search(rf"(?m)^( *){job}:\n", text)
    assert begin is not None
    # The job goes on while lines stand deeper than its name.
    body = re.match(rf"(?:{begin[1]} +.*\n|\n)*", text[begin.end() :])
    text = body[0] if body else ""
    found = []
    for match in re.finditer(r"(?m)^( *)(?:- )?run: (.*)\n((?:\1 +.*\n)*)", text):
        block = textwrap.dedent(match[3]) if match[2] == "|" else match[2]
        found.append(block.strip())
    if script := re.search(r"(?m)^  script:\n((?:    - .*\n)+)", text):
        found += [line.removeprefix("    - ") for line in script[1].splitlines()]
    assert found
    return found


def variables(name: str) -> dict[str, str]:
    text = (WORKFLOWS / name).read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^ +([A-Z_]+): (.+)$", text))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A checkout with tools that answer as recorded: nvcc, git worktree, pip, and gemmprof itself."""
    work, tools, before = tmp_path / "work", tmp_path / "tools", tmp_path / "before"
    for folder in (work, tools, before):
        folder.mkdir()
    scripts = {
        "gemmprof": f'exec "{sys.executable}" -m gemmprof "$@"',
        "pip": "exit 0",
        "git": "exit 0",
        # The compiler of the recorded builds: the log of the side that it is called on.
        "nvcc": f'case "$PWD" in */before) side=old;; *) side=$NEW_BUILD;; esac; cat {DATA / "builds"}/$side.log >&2',
    }
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    return work


def run(place: Path, name: str, lines: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    found = {key: value for key, value in variables(name).items() if key.isupper()}
    return subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)],
        capture_output=True, text=True, check=False, cwd=place,
        env={
            **os.environ, **found, **environment, "PYTHONPATH": str(ROOT),
            "PATH": f"{place.parent / 'tools'}:{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(place / "summary.md"), "GITHUB_BASE_REF": "main",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": "0000000",
        },
    )  # fmt: skip


@pytest.mark.parametrize(("new", "code"), [("old", 0), ("new", 1)])
@pytest.mark.parametrize("name", ["github-build.yml", "gitlab.yml"])
def test_the_build_workflows(name: str, new: str, code: int, place: Path) -> None:
    done = run(place, name, commands(name, "build"), NEW_BUILD=new)
    assert done.returncode == code, done.stderr
    assert ("architecture sm_80 was built before and is missing" in done.stderr) == (code == 1)
    if name == "gitlab.yml":
        assert "<testsuite" in (place / "build.xml").read_text()
    else:
        assert "| verdict | kernel |" in (place / "summary.md").read_text()


@pytest.mark.parametrize(
    ("name", "after", "code"),
    few(
        [
            (name, *side)
            for name in ("github-gpu.yml", "gitlab.yml")
            for side in (("base", 0), ("fewer_registers", 1))
        ],
        [("github-gpu.yml", "fewer_registers", 1)],
    ),
)
def test_the_gpu_workflows(name: str, after: str, code: int, place: Path) -> None:
    noise = DATA / "noise"
    save = ["gemmprof", "baseline", "save", "main", str(noise / "code_base.ncu-rep.xz")]
    in_process.run(save, cwd=place, check=True)
    lines = commands(name, "profile")
    # Here ends what goes without a GPU: the profile itself is a recorded one.
    profiled = next(line for line in lines if line.startswith("gemmprof profile"))
    help_text = in_process.run(["gemmprof", "profile", "--help"], check=True).stdout
    assert all(option in help_text for option in re.findall(r" (--[a-z-]+) ", profiled))
    (place / "profiles" / "after").mkdir(parents=True)
    shutil.copy(noise / f"code_{after}.ncu-rep.xz", place / "profiles" / "after" / "kernels.ncu-rep.xz")
    done = run(place, name, [line for line in lines if line != profiled])
    assert done.returncode == code, done.stderr + done.stdout
    if name == "gitlab.yml":
        assert (place / "kernels.xml").is_file()
    elif code:
        assert re.search(r"^::error file=[^,]+,line=\d+,title=gemmprof::", done.stdout, re.MULTILINE)


def parsed(name: str) -> dict[Any, Any]:
    """A workflow as YAML 1.2 reads it: ``on`` is a text."""
    from ruamel.yaml import YAML

    found = YAML(typ="safe", pure=True).load((WORKFLOWS / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("github-build.yml", "vendor.github-workflows"),
        ("github-gpu.yml", "vendor.github-workflows"),
        ("gitlab.yml", "vendor.gitlab-ci"),
        (str(ROOT / ".github" / "workflows" / "campaign.yml"), "vendor.github-workflows"),
    ],
)
def test_they_are_what_their_servers_read(name: str, schema: str) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(WORKFLOWS / name)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("name", ["github-build.yml", "github-gpu.yml"])
def test_github_jobs_may_read_and_nothing_else(name: str) -> None:
    workflow = parsed(name)
    assert workflow["on"] == ["pull_request"], "pull_request_target would run a fork's code with our token"
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job and job["timeout-minutes"] <= 60
        if "self-hosted" in job["runs-on"]:
            assert job["if"] == "github.event.pull_request.head.repo.full_name == github.repository"
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            assert "${{" not in step.get("run", ""), (
                "a title of a pull request would become a part of the script"
            )


def test_the_campaign_runs_by_itself_and_attacks_what_there_is() -> None:
    """Once a day and when its rooms change: each of them exists, and what it calls is what anybody can call."""
    file = ROOT / ".github" / "workflows" / "campaign.yml"
    workflow = parsed(str(file))
    assert workflow["permissions"] == {"contents": "read"} and workflow["on"]["schedule"]
    for path in workflow["on"]["push"]["paths"]:
        assert (ROOT / path.removesuffix("/**")).exists(), path
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/campaign"]
    assert all(
        re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]) for step in job["steps"] if "uses" in step
    )
    assert "\nmake campaign" in (ROOT / ".ci" / "campaign").read_text(encoding="utf-8")


def pythons(place: Path, answers: dict[str, str]) -> str:
    """What `.ci/newer-python` finds where PATH and pyenv hold no other Pythons than these."""
    folder = place / "path"
    folder.mkdir()
    for name in ("bash", "cut", "env", "python3", "sort", "tail", "timeout"):
        found = sys.executable if name == "python3" else shutil.which(name)
        assert found
        (folder / name).symlink_to(found)
    for name, script in answers.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        [ROOT / ".ci" / "newer-python"], capture_output=True, text=True, check=True,
        env={"PATH": str(folder), "PYENV_ROOT": str(place)},
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        ({}, ""),
        ({"python3.98": "echo 'pyenv: python3.98: command not found' >&2; exit 127"}, ""),
        (
            {"python3.97": "printf '3\\t97\\t1\\t/a\\n'", "python3.98": "exit 127", "python3.9": "exit 1"},
            "/a",
        ),
        ({"python3.97": "printf '3\\t97\\t0\\t/a\\n'", "python3.100": "printf '3\\t100\\t0\\t/b\\n'"}, "/b"),
    ],
    ids=["none", "a shim that fails", "one that runs", "the newest of two"],
)
def test_a_second_python_is_one_that_runs(answers: dict[str, str], wanted: str, tmp_path: Path) -> None:
    assert pythons(tmp_path, answers) == wanted


def test_gitlabs_own_runner_takes_no_forks() -> None:
    for job in parsed("gitlab.yml").values():
        if "tags" in job:
            for rule in job["rules"]:
                assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rule["if"]


def test_no_text_says_to_install_a_name_that_anybody_may_hold() -> None:
    """gemmprof is on no package index: what is there under its name is somebody else's."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *WORKFLOWS.iterdir()]
    files += [file for room in ("gemmprof", "profiler", "kernels", "analysis", "reports", "tests")
              for file in (ROOT / room).rglob("*.py")]  # fmt: skip
    bare = re.compile(r"pip3? install [\"']?gemmprof(?! @)")
    wrong = [str(file.relative_to(ROOT)) for file in files if bare.search(file.read_text(encoding="utf-8"))]
    assert not wrong, "\n".join(wrong)
