"""The catalogue: complete, told apart by wording alone, and strict about its file."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.agents.roles import CATALOGUE, DOMAINS, Role, by_domain, catalogue, load, role
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
ROLES = pytest.mark.parametrize("profile", catalogue(), ids=lambda profile: profile.key)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def phrases(text: str, length: int = 4) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[start : start + length]) for start in range(len(found) - length + 1)}


def texts(profile: Role) -> list[str]:
    """Every text by which a prompt may give the role away."""
    return [text for text in (profile.description, profile.instruction, profile.second_call) if text]


def test_catalogue_names_every_role_of_each_domain() -> None:
    assert {domain: [r.name for r in by_domain(domain)] for domain in DOMAINS} == {
        domain: sorted(names.split()) for domain, names in NAMES.items()
    }


def test_catalogue_is_sorted_by_key_and_read_once() -> None:
    keys = [r.key for r in catalogue()]
    assert keys == sorted(set(keys))
    assert len(keys) == 26
    assert catalogue() is catalogue()


@ROLES
def test_behaviours_follow_the_table(profile: Role) -> None:
    expected = SPECIAL.get(profile.key, USUAL[profile.domain])
    assert (profile.sees, profile.output, profile.tool, profile.second_call is not None) == expected


@ROLES
def test_solving_roles_reason_and_design_roles_are_brief(profile: Role) -> None:
    instruction = profile.instruction.lower()
    assert ("be brief" in instruction) == (profile.output == "text")
    if profile.output not in {"text", "keywords"}:
        assert "step by step" in instruction


@ROLES
def test_programs_that_are_executed_know_their_result_variable(profile: Role) -> None:
    executed = profile.tool in {"execute_answer", "execute_code"}
    assert ("variable named answer" in profile.instruction) == executed


@ROLES
def test_each_text_holds_a_phrase_no_other_text_holds(profile: Role) -> None:
    everyone = Counter(phrase for other in catalogue() for text in texts(other) for phrase in phrases(text))
    for text in texts(profile):
        assert any(everyone[phrase] == 1 for phrase in phrases(text)), text


def test_no_text_is_part_of_another() -> None:
    every = [text for profile in catalogue() for text in texts(profile)]
    assert not [(a, b) for a, b in itertools.permutations(every, 2) if a in b]


def test_descriptions_share_less_than_half_of_their_content_words() -> None:
    content = {r.key: {word for word in words(r.description) if len(word) > 3} for r in catalogue()}
    for (key, mine), (other, theirs) in itertools.combinations(content.items(), 2):
        assert len(mine & theirs) / len(mine | theirs) < 0.5, (key, other)


def test_profile_names_domain_and_role() -> None:
    assert role("Math/Scientist").profile == f"Math/Scientist: {role('Math/Scientist').description}"
    assert role("Math/Scientist").profile != role("Commonsense/Scientist").profile


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


FIELDS = ("description", "instruction", "sees", "output", "tool", "second_call")
VALID = {"sees": "plain", "output": "answer", "tool": "none", "second_call": None}


@given(
    field=st.sampled_from(FIELDS),
    value=st.sampled_from([None, 3, [], "", " x", "two\nlines", "line\n", "other"]),
)
def test_a_field_is_valid_or_refused_by_name(
    tmp_path_factory: pytest.TempPathFactory, field: str, value: object
) -> None:
    entry = {"description": "who", "instruction": "how", **VALID, field: value}
    path = tmp_path_factory.getbasetemp() / "one_role.yaml"
    path.write_text(yaml.safe_dump({"Code/Someone": entry}))
    allowed: dict[str, list[object]] = {
        "description": ["other"],
        "instruction": ["other"],
        "second_call": [None, "other"],
    }
    if value in allowed.get(field, []):
        assert getattr(load(path)[0], field) == value
    else:
        with pytest.raises(UserError, match=rf"one_role\.yaml: Code/Someone\.{field}: "):
            load(path)


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_refused(tmp_path: Path, field: str) -> None:
    entry = {"description": "who", "instruction": "how", **VALID}
    del entry[field]
    path = tmp_path / "roles.yaml"
    path.write_text(yaml.safe_dump({"Code/Someone": entry}))
    with pytest.raises(UserError, match=rf"roles\.yaml: Code/Someone\.{field}: missing"):
        load(path)


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text(yaml.safe_dump({"Code/Someone": {"description": "who", "instruction": "how", **VALID, "mood": 1}}))
    with pytest.raises(UserError, match=r"roles\.yaml: Code/Someone: unknown key 'mood'"):
        load(path)


@pytest.mark.parametrize("key", ["Someone", "Cooking/Someone", "Code/some one", "Code/", "Code/A/B", "xCode/A", 7])
def test_a_key_outside_the_domains_is_refused(tmp_path: Path, key: str | int) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text(yaml.safe_dump({key: {"description": "who", "instruction": "how", **VALID}}))
    with pytest.raises(UserError, match=re.escape(str(key))):
        load(path)


def test_a_role_declared_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "roles.yaml"
    path.write_text(CATALOGUE.read_text() + "\nMath/Inspector: {}\n")
    with pytest.raises(UserError, match=r"roles\.yaml: line \d+: duplicate key 'Math/Inspector'"):
        load(path)
