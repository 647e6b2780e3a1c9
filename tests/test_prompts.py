"""Digests of all prompts: recordings answer only calls with identical prompts.

If a test fails, undo the change. If the change is intended, store the new digest and list the recordings that can no
longer be replayed in CHANGELOG.md.
"""

from pathlib import Path

from harness.benchmarks.catalogue import benchmark
from harness.files import ROOT, digest, read_yaml
from harness.llm.backbones import load
from harness.llm.call_log import CallLogReader

# Distinct messages of each method in the shared run on HumanEval, replies of simulated backbones included.
MESSAGES = {
    "single": "36838e5681ca09b1",
    "cot": "f6b993e850ff7a70",
    "complex_cot": "ab121f761191141d",
    "macnet_chain": "462ae21c03289f17",
    "macnet_tree": "15e22dd221d7b06c",
    "macnet_complete": "85f2cb460323a035",
    "aflow": "fb44d209e80bdb6d",
    "puppeteer": "7251d8b4914651bb",
    "masrouter": "f4be9dac4ae5bba1",
    "gmr": "7177558d3b9e0e4b",
}
# Texts of roles and templates, output rules and profiles, for all domains.
TEXTS = {"files": "28f7a53155657959", "output rules": "aeed9167497ef7d9", "backbones": "6d98ab2775dfea9d"}
KINDS = (".yaml", ".j2")


def test_every_method_sends_the_stored_messages(finished: Path) -> None:
    found = {}
    for method in MESSAGES:
        (path,) = (finished / "results/smoke/cells" / method).rglob("calls.sqlite")
        with CallLogReader(path) as log:
            calls = [log.texts(key) for key in log.all_keys()]
        messages = sorted({message for call in calls if call for message in call.messages})
        found[method] = digest([list(message) for message in messages])[:16]
    assert found == MESSAGES


def test_texts_of_all_domains_are_the_stored_ones() -> None:
    files = [path for name in ("harness/agents", "baselines") for path in sorted((ROOT / name).rglob("*.*"))]
    texts = [path.read_text() if path.suffix == ".j2" else read_yaml(path) for path in files if path.suffix in KINDS]
    rules = [benchmark(key).output_rules for key in ("math", "gsm_hard", "mbpp", "humaneval", "mmlu_pro")]
    profiles = [backbone.profile for backbone in load(ROOT / "config/backbones.yaml").values()]
    found = zip(TEXTS, (texts, rules, profiles), strict=True)
    assert {name: digest(values)[:16] for name, values in found} == TEXTS
