"""The pinned versions are those that the package allows."""

import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.files import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_constraints_pin_and_satisfy_every_dependency() -> None:
    lines = [line.split("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
    pins = {canonicalize_name(name): Version(version) for name, version in (one.split("==") for one in lines if one)}
    assert len(pins) == len([one for one in lines if one])
    extras = {name: needs for name, needs in PROJECT["optional-dependencies"].items() if name != "serve"}
    declared = [*PROJECT["dependencies"], *(one for needs in extras.values() for one in needs)]
    for requirement in map(Requirement, declared):
        if requirement.name == PROJECT["name"]:
            assert requirement.extras <= set(extras)
        else:
            assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement
