"""What is kept of a run: the figures, and what they were taken with."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.declared import Experiment
from benchmarks.running import ROOT

_PACKAGES = ("tamis", "numpy", "numba", "numba-cuda", "llvmlite", "lxml", "pygixml")


def record(experiment: Experiment, workloads: dict[str, Any], load: float) -> dict[str, Any]:
    """The record of one experiment.

    Args:
        workloads: the figures of each, or why there are none.
        load: how many processes wanted to run before ours did.
    """
    return {
        "experiment": experiment.name,
        "about": experiment.about,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": machine(load),
        "versions": versions(),
        "workloads": workloads,
    }


def write(path: Path, table: dict[str, Any]) -> None:
    """Write a record, replacing an older one; declarations have the seeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def machine(load: float) -> dict[str, Any]:
    """What programs ran on."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "gpus": gpus(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": round(load, 2),
    }


def processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def gpus() -> list[str]:
    """The names of GPUs and of their driver."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, check=False, capture_output=True, text=True).stdout.splitlines()


def versions() -> dict[str, str]:
    """Of Python, and of the packages that there are."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit that is checked out, with "+" if files were changed since; "" outside of git."""
    try:
        head = _git("rev-parse", "HEAD")
        unchanged = ("--untracked-files=no", "--", ".", ":!benchmarks/records", ":!docs")
        changed = _git("status", "--porcelain", *unchanged)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
