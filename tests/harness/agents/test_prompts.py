from harness.agents.prompts import HINTS_HEADER, RECORDS_HEADER, Record, agent_prompt, question_prompt, render_records
from harness.agents.roles import catalogue
from harness.benchmarks.items import Item

ITEM = Item(id="1", benchmark="math", question="What is 1 + 1?", gold="2")


def test_static_text_comes_first_the_question_next_memory_last() -> None:
    role, records = catalogue()[0], [Record("A", "first"), Record("B", "second")]
    system, user = agent_prompt(role, "RULES", ITEM, records, ["1", "2"])
    assert system.content == f"{role.description}\n\n{role.instruction}\n\nRULES"
    shown = f"Question:\nWhat is 1 + 1?\n\n{RECORDS_HEADER}\n\n[1] A:\nfirst\n\n[2] B:\nsecond"
    assert user.content == f"{shown}\n\n{HINTS_HEADER} 1; 2"
    fewer = ["".join(one.content for one in agent_prompt(role, "RULES", ITEM, records[:n])) for n in range(3)]
    assert fewer[2].startswith(fewer[1])
    assert fewer[1].startswith(fewer[0])


def test_without_instruction_or_records_nothing_is_left_over() -> None:
    [message] = question_prompt("", "RULES", ITEM)
    assert message.content == "RULES\n\nQuestion:\nWhat is 1 + 1?"
    assert render_records([]) == ""
