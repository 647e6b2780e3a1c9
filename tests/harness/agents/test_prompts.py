from harness.agents.prompts import HINTS_HEADER, RECORDS_HEADER, Record, agent_prompt, question_prompt, render_records
from harness.agents.roles import catalogue
from harness.benchmarks.items import Item

ITEM = Item(id="1", benchmark="math", question="What is 1 + 1?", gold="2")


def test_static_text_comes_first_the_question_next_memory_last() -> None:
    role = catalogue()[0]
    system, user = agent_prompt(role, "RULES", ITEM, [Record("A", "first"), Record("B", "second")])
    assert system.content == f"{role.description}\n\n{role.instruction}\n\nRULES"
    assert user.content == f"Question:\nWhat is 1 + 1?\n\n{RECORDS_HEADER}\n\n[1] A:\nfirst\n\n[2] B:\nsecond"


def test_prompts_of_one_trajectory_share_their_beginning() -> None:
    role = catalogue()[3]
    records = [Record("A", "first"), Record("B", "second")]
    texts = ["".join(m.content for m in agent_prompt(role, "RULES", ITEM, records[:n])) for n in range(3)]
    assert texts[1].startswith(texts[0])
    assert texts[2].startswith(texts[1])


def test_without_instruction_or_records_nothing_is_left_over() -> None:
    [message] = question_prompt("", "RULES", ITEM)
    assert message.content == "RULES\n\nQuestion:\nWhat is 1 + 1?"
    assert render_records([]) == ""


def test_hints_close_the_prompt() -> None:
    role = catalogue()[0]
    system, user = agent_prompt(role, "RULES", ITEM, [Record("A", "first")], ["1", "2"])
    assert system.content == f"{role.description}\n\n{role.instruction}\n\nRULES"
    assert user.content.endswith(f"[1] A:\nfirst\n\n{HINTS_HEADER} 1; 2")
