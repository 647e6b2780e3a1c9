"""The artefacts by section of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

OTHER = "Not in the paper"
# Of every artefact what readers call it; the order is that of the paper.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Main results": {
        "main_table": "Accuracy of every method",
        "paired": "GMR against every other row on the same questions",
        "errors": "Answers without a verdict",
    },
    "Cost and time": {
        "costs": "Calls, tokens and cost of a question",
        "gsm_cost": "Accuracy and cost on GSM-Hard",
        "he_cost": "Accuracy and cost on HumanEval",
        "pareto_gsm": "Accuracy against cost on GSM-Hard",
        "pareto_he": "Accuracy against cost on HumanEval",
        "hw_cost": "FLOPs and time of a question",
        "backbones": "Size and price of the backbones",
    },
    "Ablations": {
        "ablation": "The six switches",
        "ablation/no_role_allocator": "Without the role allocator",
        "ablation/no_llm_router": "Without the router of backbones",
        "ablation/no_retrieval_gate": "Without the retrieval gate",
        "ablation/no_write_gate": "Without the write gate",
        "ablation/no_halting": "Without halting",
        "ablation/no_memory_gates": "Without both gates of the memory",
    },
    "Routing paradigms": {"paradigm": "Query-only, full-history and gated-memory routing"},
    "Depth and weight of cost": {
        "depth": "Accuracy and cost by maximum depth",
        "lambda_sweep": "Three weights of cost",
        "lambda_frontier": "Accuracy against cost by weight of cost",
    },
    "Memory gates and halting": {
        "gate_behaviour": "Depth, writes and retrievals",
        "gate_entropy": "Entropy of the decisions in training",
        "halting_training": "Training with and without halting",
    },
    "Roles": {"roles13": "13 of the 26 roles", "role_pool": "The roles of the benchmark's domain alone"},
    "Training": {
        "training_budget": "What every learner learned from",
        "training_curves": "What every policy gained, epoch by epoch",
    },
    "Seeds": {"seed_variance": "Mean and deviation over three trainings"},
    OTHER: {
        "leak_report": "Near-duplicates between training and test",
        "simulator_sensitivity": "Conclusions that flip when an assumption of the simulator moves",
    },
}


def section(key: str) -> str:
    """The section of an artefact, :data:`OTHER` for one that none names."""
    return next((name for name, titles in SECTIONS.items() if key in titles), OTHER)


def title(key: str) -> str:
    """What readers call an artefact; its key where it has no other name."""
    return SECTIONS[section(key)].get(key, key)


def by_section(keys: Iterable[str]) -> dict[str, list[str]]:
    """Keys by section, in the order of the paper; sections without any are left out."""
    wanted = list(keys)
    found = {name: [key for key in titles if key in wanted] for name, titles in SECTIONS.items()}
    found[OTHER] += [key for key in wanted if not any(key in titles for titles in SECTIONS.values())]
    return {name: of for name, of in found.items() if of}
