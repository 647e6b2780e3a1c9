"""Rules of reading, counted: on how many real replies each one changes the verdict, for the better and for the worse.

    pytest -m nightly -s --timeout 0 tests/nightly/test_reading_rules.py

Each rule is left out alone, while all others hold. A verdict is right if it is that of the whole reader, whose
disagreements with recorded verdicts a person has read (``test_agreement.py``), unless the review says otherwise. The
table is written to docs/grading.md. Programs are executed only where the extracted programs differ. The folder of
GMR_DATA_DIR is described in docs/grading.md.
"""

import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from harness.benchmarks import gsm_hard, math, mmlu_pro, programs, reading
from harness.benchmarks.base import Tools
from harness.benchmarks.catalogue import benchmark
from harness.benchmarks.math_verifier import MathVerifier
from harness.benchmarks.prepare import load_items
from harness.concurrency import gather
from harness.files import ROOT, read_yaml
from harness.sandbox import Sandbox
from tests.harness.benchmarks.conftest import mirror
from tests.nightly.test_agreement import Reply, outputs

__all__ = ["mirror"]

pytestmark = [pytest.mark.nightly, pytest.mark.realdata]

PAGE = ROOT / "docs" / "grading.md"
FILES = ("mmlu_pro", "mmlu_stem", "math", "gsm8k", "humaneval", "mbpp")
RECENT = ("recent-mmlu_pro", "recent-math", "recent-gsm8k", "recent-gsm8k_freeform", "recent-code")
FEW = 3  # replies that a rule needs, or one per mille of a benchmark's
MATH, GSM, LETTER, CODE = ("math",), ("gsm_hard",), ("mmlu_pro",), ("mbpp", "humaneval")
TEXTS = (*MATH, *GSM, *LETTER)

QUOTED = "promise: what is quoted from a colleague is not the reply's own answer"
THINKING = "promise: thinking is no answer"
UNCLOSED = "promise: a program that never ends its fence is read"
TOOLS = "the tools of roles read them, too"
ANSWER = "the stored answers of fifteen replies would be cut; their programs are wrong either way"
PROSE = "ten replies are read otherwise; an earlier run, of teams, had two right ones among 352"
FORMAT = "GSM8K's own form; without it the agreement on one set falls by more than 0.1 %"
LARGE = "GSM-Hard has negative and huge targets; GSM8K, whose replies stand in, has hardly any"


class Rule(NamedTuple):
    """A rule of reading, and what takes the place of a module's attribute when it is left out."""

    name: str
    benchmarks: Sequence[str]
    module: Any
    attribute: str
    instead: Any = None  # default: a pattern that never matches
    reason: str = ""  # to keep it with too few replies
    is_executed: bool = False  # the rule changes how a program is run, not which


def _without(pattern: re.Pattern[str], part: str, instead: str = "(?!)") -> re.Pattern[str]:
    assert part in pattern.pattern
    return re.compile(pattern.pattern.replace(part, instead), pattern.flags)


def _first_number(statement: reading.Statement) -> str | None:
    numbers = gsm_hard._bold_numbers(statement.line) or gsm_hard._NUMBER.findall(statement.line)
    return numbers[0] if numbers else None


def _closed_blocks(text: str) -> list[Any]:
    return [block for block in _blocks(text) if block.closed]


class _NoDedent:
    dedent = staticmethod(str)


_blocks, _lead, _number = programs.fenced_blocks, reading._LEAD, gsm_hard._NUMBER
RULES = [
    Rule('"the answer is", "Answer:"', TEXTS, reading, "_LEAD"),
    Rule("... the colon", TEXTS, reading, "_LEAD", _without(_lead, "|:", "")),
    Rule("`####` before the only word of a line", TEXTS, reading, "_LEAD", _without(_lead, "^####"), FORMAT),
    Rule("boxes", TEXTS, reading, "_boxes", lambda text: []),
    Rule("... without their backslash", MATH, reading, "_BRACES", _without(reading._BRACES, r"\\?boxed", r"\\boxed")),
    Rule("bold marks, colons and line breaks before the value are skipped", TEXTS, reading, "_BEFORE_VALUE"),
    Rule("fenced Python states nothing", TEXTS, reading, "_PROGRAM"),
    Rule("a statement that breaks off does not count", TEXTS, reading, "_COMPLETE", re.compile("")),
    Rule("a colleague's paragraph is a quotation", TEXTS, reading, "_QUOTED", reason=QUOTED),
    Rule("what a colleague says is a quotation", TEXTS, reading, "_QUOTE", reason=QUOTED),
    Rule("... unless the reply agrees", TEXTS, reading, "_AGREED", reason=QUOTED),
    Rule("thinking ends at its closing mark", TEXTS, reading, "_CLOSED", reason=THINKING),
    Rule("thinking begins at its opening mark", TEXTS, reading, "_OPENED", reason=THINKING),
    Rule("marks of the chat template at the end are dropped", TEXTS, reading, "_END_OF_TURN"),
    Rule("MATH: the formula that begins the statement is the value", MATH, math, "_FORMULA"),
    Rule("MATH: of a calculation the result", MATH, math, "_UNKNOWN", re.compile("")),
    Rule("MATH: counted nouns are dropped", MATH, math, "_COUNTED"),
    Rule("GSM-Hard: a bold number first", GSM, gsm_hard, "_BOLD"),
    Rule("GSM-Hard: groups of three digits", GSM, gsm_hard, "_NUMBER", _without(_number, r"\d{1,3}(?:,\d{3})+")),
    Rule("GSM-Hard: the number after the last equals sign", GSM, gsm_hard, "_stated_number", _first_number),
    Rule("GSM-Hard: minus signs", GSM, gsm_hard, "_NUMBER", _without(_number, r"(?<![\w)])-"), LARGE),
    Rule("GSM-Hard: other dashes", GSM, gsm_hard, "_MINUS", reason=LARGE),
    Rule("GSM-Hard: exponents", GSM, gsm_hard, "_NUMBER", _without(_number, r"[eE][+-]?\d{1,3}\b"), LARGE),
    Rule("GSM-Hard: without a statement the last number", GSM, gsm_hard, "own", lambda text: ""),
    Rule("MMLU-Pro: two options are no choice", LETTER, mmlu_pro, "_HEAD", re.compile(r"[^\w.\n]*([A-J])(?![\w'’])")),
    Rule("MMLU-Pro: a letter that ends the text", LETTER, mmlu_pro, "_LAST"),
    Rule("MMLU-Pro: ... behind an arrow or a colon", LETTER, mmlu_pro, "_LAST", _without(mmlu_pro._LAST, "|[:>]", "")),
    Rule('MMLU-Pro: "is (D)"', LETTER, mmlu_pro, "_IS"),
    Rule("MMLU-Pro: the only option that a line begins with", LETTER, mmlu_pro, "_OPTION"),
    Rule("programs: fenced blocks", CODE, programs, "fenced_blocks", lambda text: []),
    Rule("programs: ... that never end", CODE, programs, "fenced_blocks", _closed_blocks, UNCLOSED),
    Rule("programs: fences without a language", CODE, programs, "PYTHON_FENCES", {"py", "python", "python3"}, TOOLS),
    Rule("programs: indented blocks", CODE, programs, "textwrap", _NoDedent, ANSWER),
    Rule("programs: complete statements of what does not parse", CODE, programs, "salvage", lambda text: ""),
    Rule("programs: ... amid prose", CODE, programs, "_MAX_STRETCHES", 1, PROSE),
    Rule("programs: example calls may fail", CODE, programs, "without_example_calls", str, is_executed=True),
]


def recorded() -> Iterator[Reply]:
    """Yield the final replies of the bundles in evidence/."""
    questions = {
        (key, item.id): item
        for key in ("math", "gsm_hard", "mmlu_pro", "mbpp", "humaneval")
        for item in load_items(key, "real").items
    }
    for path in sorted((ROOT / "evidence").glob("*/*.zip")):
        with zipfile.ZipFile(path) as bundle:
            for name in sorted(bundle.namelist()):
                if not name.endswith(("items.parquet", "nodes.parquet")):
                    continue
                key = name.split("/")[4 if name.endswith("items.parquet") else 3]
                for row in pd.read_parquet(io.BytesIO(bundle.read(name))).to_dict("records"):
                    cut_off = row.get("cut_off", row.get("aggregate_finish_reason") == "length")
                    place = f"{row['item_id']}/{name}/{row.get('role')}/{row.get('backbone')}/{row.get('stored')}"
                    yield Reply(path.stem, place, questions[key, row["item_id"]], row["text"] or "", bool(cut_off))


def annotated() -> Iterator[Reply]:
    """Yield the replies of SmolLM2 that the tests of extraction read; ``upstream`` is a reader."""
    rows = (ROOT / "tests" / "harness" / "benchmarks" / "real_replies.jsonl").read_text().splitlines()
    for row in map(json.loads, rows):
        (item,) = [item for item in load_items(row["benchmark"], "embedded").items if item.id == row["id"]]
        key = f"{row['id']}/{row['purpose']}"
        yield Reply("SmolLM2", key, item, row["reply"], row["cut_off"], "a reader", str(row["answer"]), row["right"])


def _read(reply: Reply) -> str | None:
    subject = benchmark(reply.item.benchmark)
    return subject.extract(reply.item, reply.text, reply.cut_off) if reply.text.strip() else None


class Judge:
    """Verdicts on extracted answers. Programs are executed, each once."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._verdicts: dict[Any, bool] = {}

    async def __call__(self, reply: Reply, answer: str | None) -> bool:
        subject, item = benchmark(reply.item.benchmark), reply.item
        if reply.upstream == "a reader" and item.code is None:
            stated = None if reply.upstream_pred == "None" else reply.upstream_pred
            return answer == stated or (None not in (answer, stated) and subject.same(item, str(answer), str(stated)))
        if answer is None or item.code is None:
            return answer is not None and subject.same(item, item.gold, answer)
        key = (item.code, programs.canonical(answer), programs.without_example_calls is str)
        if key not in self._verdicts:
            self._verdicts[key] = (await subject.grade_answer(item, answer, self._tools)).correct
        return self._verdicts[key]


def _clear_caches() -> None:
    for module in (programs, reading):
        for value in vars(module).values():
            getattr(value, "cache_clear", int)()


def _is_touched(rule: Rule, current: Any, reply: Reply, whole: str | None, answer: str | None) -> bool:
    """Whether a rule can change the verdict. Programs that differ in layout or comments have the same verdict."""
    if rule.is_executed:
        return whole is not None and current(whole) != whole
    if whole is None or answer is None or reply.item.code is None:
        return whole != answer
    return programs.canonical(whole) != programs.canonical(answer)


async def count(
    rule: Rule, replies: Sequence[Reply], whole: Mapping[int, str | None], judge: Judge, patch: pytest.MonkeyPatch
) -> tuple[list[Reply], list[Reply]]:
    """Return the replies that lose their credit without a rule, and those that gain it."""
    current = getattr(rule.module, rule.attribute)
    instead = re.compile(f"(?!)(?:{current.pattern})", current.flags) if rule.instead is None else rule.instead
    patch.setattr(rule.module, rule.attribute, instead)
    _clear_caches()
    read = [(one, whole[id(one)], _read(one)) for one in replies if one.item.benchmark in rule.benchmarks]
    touched = [row for row in read if _is_touched(rule, current, *row)]
    after = await gather(judge(reply, new) for reply, _, new in touched)
    patch.undo()
    _clear_caches()
    before = await gather(judge(reply, old) for reply, old, _ in touched)
    changed = [(reply, then) for (reply, *_), then, now in zip(touched, before, after, strict=True) if then is not now]
    return [reply for reply, then in changed if then], [reply for reply, then in changed if not then]


async def test_every_rule_is_needed_by_real_replies(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [reply for file in (*FILES, *RECENT) for reply in outputs(mirror, file)]
    replies = [*files, *recorded(), *annotated()]
    whole = {id(reply): _read(reply) for reply in replies}
    reviewed: Any = read_yaml(Path(__file__).with_name("agreement_reviewed.yaml"))
    mistaken = {
        (file, key)
        for file, rules in reviewed.items()
        for rows in rules.values()
        for key, row in rows.items()
        if row["right"] == "upstream"
    }
    table = ["| rule | right verdicts lost | wrong verdicts mended | if few: why it stays |", "|---|---:|---:|---|"]
    superfluous = []
    async with Sandbox() as sandbox, MathVerifier() as math_verify:
        judge = Judge(Tools(sandbox, math_verify))
        for rule in RULES:
            changed = await count(rule, replies, whole, judge, monkeypatch)
            # The whole reader is right, but for what a review says.
            mended = [one for side in changed for one in side if (one.file, one.key) in mistaken]
            lost, gained = sum(map(len, changed)) - len(mended), len(mended)
            total = sum(reply.item.benchmark in rule.benchmarks for reply in replies)
            is_needed = lost - gained >= min(FEW, total / 1000)
            if not is_needed and not rule.reason:
                superfluous.append(rule.name)
            table.append(f"| {rule.name} | {lost} | {gained} | {'' if is_needed else rule.reason} |")
            print(table[-1], Counter(one.file for side in changed for one in side).most_common(5), flush=True)
            for side in changed:
                print(*(f"    {one.file} {one.key} {one.text[-80:]!r}" for one in side[:3]), sep="\n")
    before, _, after = PAGE.read_text().partition("| rule |")
    PAGE.write_text(before + "\n".join(table) + "\n\n" + after.partition("\n\n")[2])
    assert superfluous == []
