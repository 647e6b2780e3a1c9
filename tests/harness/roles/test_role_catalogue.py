"""The catalogue: complete, told apart by wording alone, and strict about its file."""

import itertools
from pathlib import Path

import pytest

from harness.agents.roles import CATALOGUE, DOMAINS, Role, by_domain, catalogue
from harness.errors import UserError
from harness.files import read_entries

NAMES = {
    "Code": "AlgorithmDesigner BugFixer PlanSolver ProgrammingExpert ProjectManager ReflectProgrammer TestAnalyst",
    "Commonsense": "Critic Economist Historian KnowledgeExpert Reflector Scientist WikiSearcher",
    "Math": """AlgorithmEngineer CertifiedAccountant Economist Engineer Inspector MathAnalyst MathSolver
        MathTeacher Mathematician ProgrammingExpert Scientist SoftwareDeveloper""",
}


def test_catalogue_names_every_role_of_each_domain() -> None:
    assert {domain: [r.name for r in by_domain(domain)] for domain in DOMAINS} == {
        domain: sorted(names.split()) for domain, names in NAMES.items()
    }


def test_no_text_is_part_of_another() -> None:
    texts = [text for one in catalogue() for text in (one.description, one.instruction, one.second_call) if text]
    assert not [(a, b) for a, b in itertools.permutations(texts, 2) if a in b]


def test_an_unknown_domain_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown domain 'math'.*'Math'"):
        by_domain("math")


def test_a_slip_in_the_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text(CATALOGUE.read_text().replace("Math/Inspector:", "Cooking/Someone:"))
    with pytest.raises(UserError, match=r"roles\.yaml: .*Cooking/Someone"):
        read_entries(path, Role)
