from harness.benchmarks.items import Item
from harness.benchmarks.prepare import load_items
from harness.files import ROOT
from harness.llm.backbones import load

MODELS = load(ROOT / "config" / "backbones.yaml")


def word_problems(count: int) -> list[Item]:
    texts = "Crate {} weighs {} grams and holds {} jars. What do {} crates weigh?"
    numbers = [(n, n * 37 + 5, n % 11, n % 7 + 3) for n in range(count)]
    return [Item(str(row[0]), "gsm_hard", texts.format(*row), repr(float(row[1] * row[3]))) for row in numbers]


def mini(key: str, count: int) -> list[Item]:
    return load_items(key, "embedded").items[:count]
