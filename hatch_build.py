"""The build compiles the kernels: see :mod:`tamis.core.kernel.build`.

``TAMIS_LEVELS`` names levels of processors, with commas between, or is ``all``; by default the
library is for the processor that builds.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What auditwheel says of a library that needs nothing but memcpy and memset.
_TAGS = {"Linux": "manylinux_2_17_{machine}.manylinux2014_{machine}"}


class KernelHook(BuildHookInterface[Any]):
    """Makes the native library before its files are collected."""

    def dependencies(self) -> list[str]:
        """A linker from PyPI where there is none."""
        return [] if any(map(shutil.which, ("cc", "gcc", "clang"))) else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, and say what the wheel fits."""
        if self.target_name != "wheel":
            return
        # With the packages of the build environment, where pip brings them by this same variable.
        found = [str(Path(self.root, "src")), *filter(None, sys.path)]
        asked = filter(None, os.environ.get("TAMIS_LEVELS", "").split(","))
        levels = [f"--level={level}" for level in asked]
        subprocess.run(
            [sys.executable, "-m", "tamis.core.kernel.build", *levels],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(found)},
            check=True,
        )
        native = "src/tamis/core/kernel/native"
        build_data["artifacts"] += [f"{native}/*.so", f"{native}/library.json"]
        platform_tag = _TAGS.get(platform.system())
        if version != "editable" and platform_tag is not None:
            build_data["tag"] = f"py3-none-{platform_tag.format(machine=platform.machine())}"
        build_data["pure_python"] = False
