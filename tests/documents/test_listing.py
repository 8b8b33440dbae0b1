"""Patterns: ``**`` compared with Python's glob, and where glob would not come to an end."""

from __future__ import annotations

import os
from glob import glob
from pathlib import Path

import pytest

from tamis.documents.files import expanded

FILES = ("1.xml", "x/2.xml", "x/y/3.xml", "x/y/z/4.xml", "w/y/5.xml", ".hidden/6.xml", "x/.7.xml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("<a/>")
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    ["**/*.xml", "x/**/*.xml", "*/**/*.xml", "**/y/*.xml", "**/y/**/*.xml", "x/*", "*/y", "n/**/*"],
)
def test_patterns_match_what_glob_finds(pattern: str, folder: Path) -> None:
    expected = sorted(set(glob(pattern, root_dir=folder, recursive=True)))
    assert expanded(pattern, str(folder)) == expected
    absolute = [str(folder / name) for name in expected]
    assert expanded(str(folder / pattern)) == absolute


def test_two_stars_at_the_end_are_files_alone(folder: Path) -> None:
    assert expanded("x/**", str(folder)) == ["x/2.xml", "x/y/3.xml", "x/y/z/4.xml"]


def test_links_in_circles(folder: Path) -> None:
    for name, target in (("x/l1", ".."), ("x/l2", ".."), ("x/y/l3", "../..")):
        os.symlink(target, folder / name)
    found = expanded("**/*.xml", str(folder))
    assert found == [name for name in sorted(FILES) if "." not in (name[0], name.split("/")[-1][0])]
