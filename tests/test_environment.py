"""The three descriptions of the environment agree: pyproject.toml, environment.yml, constraints.txt."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9.!]+)")


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def conda_dependencies() -> list[Any]:
    return yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]


def pinned_lines() -> list[str]:
    if not CONSTRAINTS.exists():
        pytest.skip("no constraints.txt in this checkout")
    lines = [line.split("#")[0].strip() for line in CONSTRAINTS.read_text().splitlines()]
    return [line for line in lines if line]


def test_python_floor_is_that_of_the_project() -> None:
    python = [Requirement(entry) for entry in conda_dependencies() if str(entry).startswith("python")]
    assert [str(requirement.specifier) for requirement in python] == [project()["requires-python"]]


def test_packages_come_from_pyproject_alone() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert environment["name"] == "gmr"
    assert environment["channels"] == ["conda-forge"]
    assert [entry for entry in conda_dependencies() if not str(entry).startswith("python")] == [
        "pip",
        {"pip": ["-e .[dev]"]},
    ]


def test_constraints_are_plain_pins() -> None:
    lines = pinned_lines()
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    names = [canonicalize_name(line.split("==")[0]) for line in lines]
    assert len(names) == len(set(names))
    assert len(names) > 0


def test_constraints_cover_and_satisfy_every_dependency() -> None:
    pairs = [line.split("==") for line in pinned_lines()]
    pins = {canonicalize_name(name): Version(version) for name, version in pairs}
    metadata = project()
    extras = [extra for extra in metadata["optional-dependencies"] if extra != "serve"]
    declared = [
        *metadata["dependencies"],
        *(one for extra in extras for one in metadata["optional-dependencies"][extra]),
    ]
    for requirement in map(Requirement, declared):
        if requirement.name == metadata["name"]:
            assert requirement.extras <= set(extras)
            continue
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{requirement} has no pin"
        assert pins[name] in requirement.specifier, f"{name}=={pins[name]} does not satisfy {requirement}"


def test_licence_is_the_declared_one() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert project()["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
