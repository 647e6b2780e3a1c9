from gmr.aggregator import NOTHING_STORED, aggregator_prompt
from harness.agents.prompts import Record
from tests.gmr.world import ITEMS, RULES

RECORDS = [Record("Critic", "It is 3."), Record("Historian", "It is 4.")]


def test_the_prompt_has_rules_first_then_question_then_records_in_memory_order() -> None:
    system, user = aggregator_prompt(RULES, ITEMS[0], RECORDS)
    assert (system.role, user.role) == ("system", "user")
    assert system.content.endswith(RULES)
    places = [user.content.index(part) for part in (ITEMS[0].question, "[1] Critic:\nIt is 3.", "[2] Historian:\n")]
    assert places == sorted(places)
    assert NOTHING_STORED not in user.content


def test_an_empty_memory_is_said_in_so_many_words() -> None:
    system, user = aggregator_prompt(RULES, ITEMS[0], [])
    assert user.content == f"Question:\n{ITEMS[0].question}\n\n{NOTHING_STORED}"
    assert system == aggregator_prompt(RULES, ITEMS[0], RECORDS)[0]
