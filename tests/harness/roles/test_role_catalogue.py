"""The catalogue: complete, told apart by wording alone, and strict about its file."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import yaml

from harness.agents.roles import CATALOGUE, DOMAINS, by_domain, catalogue, load, role
from harness.errors import UserError

NAMES = {
    "Code": """AlgorithmDesigner BugFixer PlanSolver ProgrammingExpert ProjectManager ReflectProgrammer
        TestAnalyst""",
    "Commonsense": "Critic Economist Historian KnowledgeExpert Reflector Scientist WikiSearcher",
    "Math": """AlgorithmEngineer CertifiedAccountant Economist Engineer Inspector MathAnalyst MathSolver
        MathTeacher Mathematician ProgrammingExpert Scientist SoftwareDeveloper""",
}
# (sees, output, tool, second call) where they differ from what is usual in the domain.
USUAL = {
    "Code": ("test_feedback", "text", "none", False),
    "Commonsense": ("plain", "answer", "none", False),
    "Math": ("plain", "formula", "none", False),
}
SPECIAL = {
    "Code/ProgrammingExpert": ("test_feedback", "code", "run_examples", False),
    "Code/BugFixer": ("test_feedback", "code", "run_examples", True),
    "Code/ReflectProgrammer": ("test_feedback", "code", "run_examples", True),
    "Code/PlanSolver": ("test_feedback", "text", "none", True),
    "Code/TestAnalyst": ("test_feedback", "text", "none", True),
    "Commonsense/Reflector": ("plain", "answer", "none", True),
    "Commonsense/WikiSearcher": ("plain", "keywords", "lookup", True),
    "Math/MathSolver": ("numeric_hints", "formula", "none", False),
    "Math/MathTeacher": ("numeric_hints", "formula", "none", False),
    "Math/ProgrammingExpert": ("numeric_hints", "program", "execute_answer", True),
    "Math/SoftwareDeveloper": ("plain", "formula", "execute_code", True),
    "Math/Inspector": ("plain", "answer", "none", False),
}


def test_catalogue_names_every_role_of_each_domain() -> None:
    assert {domain: [r.name for r in by_domain(domain)] for domain in DOMAINS} == {
        domain: sorted(names.split()) for domain, names in NAMES.items()
    }


def test_catalogue_is_sorted_by_key_and_read_once() -> None:
    keys = [r.key for r in catalogue()]
    assert keys == sorted(set(keys))
    assert len(keys) == 26
    assert catalogue() is catalogue()


def test_behaviours_follow_the_table() -> None:
    for profile in catalogue():
        found = (profile.sees, profile.output, profile.tool, profile.second_call is not None)
        assert found == SPECIAL.get(profile.key, USUAL[profile.domain]), profile.key
        executed = profile.tool in {"execute_answer", "execute_code"}
        assert ("variable named answer" in profile.instruction) == executed, profile.key
        assert profile.profile == f"{profile.key}: {profile.description}"


def test_no_text_is_part_of_another() -> None:
    texts = [text for one in catalogue() for text in (one.description, one.instruction, one.second_call) if text]
    assert not [(a, b) for a, b in itertools.permutations(texts, 2) if a in b]


def test_unknown_role_and_domain_name_the_nearest() -> None:
    with pytest.raises(UserError, match=r"unknown role 'Math/Inspectr'.*'Math/Inspector'.*roles\.yaml"):
        role("Math/Inspectr")
    with pytest.raises(UserError, match=r"unknown domain 'math'.*'Math'"):
        by_domain("math")


def test_same_roles_whatever_the_order_in_the_file(tmp_path: Path) -> None:
    entries = yaml.safe_load(CATALOGUE.read_text())
    shuffled = tmp_path / "roles.yaml"
    shuffled.write_text(yaml.safe_dump({key: entries[key] for key in sorted(entries, reverse=True)}, sort_keys=False))
    assert load(shuffled) == catalogue()


VALID = {
    "description": "who",
    "instruction": "how",
    "sees": "plain",
    "output": "answer",
    "tool": "none",
    "second_call": None,
}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        *(({"Code/Someone": {**VALID, field: "two\nlines"}}, rf"Code/Someone\.{field}: ") for field in VALID),
        *(({"Code/Someone": {**VALID, field: 3}}, rf"Code/Someone\.{field}: ") for field in VALID),
        *(
            ({key: VALID}, re.escape(str(key)))
            for key in ("Someone", "Cooking/Someone", "Code/some one", "Code/A/B", 7)
        ),
        ({"Code/Someone": {}}, r"Code/Someone\.description: missing"),
        ({"Code/Someone": {**VALID, "mood": 1}}, "Code/Someone: unknown key 'mood'"),
        (CATALOGUE.read_text() + "\nMath/Inspector: {}\n", r"line \d+: duplicate key 'Math/Inspector'"),
    ],
)
def test_a_slip_in_the_file_is_refused_by_name(tmp_path: Path, entries: object, message: str) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text(entries if isinstance(entries, str) else yaml.safe_dump(entries))
    with pytest.raises(UserError, match=rf"roles\.yaml: .*{message}"):
        load(path)
