"""Names of earlier versions and their replacements.

Files of users (presets, bundles, entries) with former names are still read. On the command line they are errors.
"""

import logging
from collections.abc import Container, Iterable, Mapping

logger = logging.getLogger(__name__)

#: Current names by kind and former name.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "method": {"masrouter_kappa_20": "masrouter_cost_weight_20"},
    "key": {"also_asks": "further_backbones"},
}
#: Current names of a method's settings, by module.
SETTINGS: Mapping[str, Mapping[str, str]] = {
    "baselines.masrouter": {"kappa": "cost_weight"},
    "baselines.puppeteer": {"step_weight": "cost_weight"},
}
_SIMULATED = "simulated backbones reply in the process of a cell, in presets with `endpoints: simulated`"
_LEARNING = "docs/simulator.md has the command that compares gmr over several seeds with itself as initialised"
#: Removed names by kind, with what to use instead.
GONE: Mapping[str, Mapping[str, str]] = {
    "artefact": {
        "claims_power": "`paired` has the difference that the questions of a run show with 80 % power",
        "specification_table": "its readings are methods that any run may name, such as gmr_dot",
        "learning": _LEARNING,
        "leak_report": "`gmr audit` finds test questions that are, or nearly are, training questions",
    },
    "preset": {"learning": _LEARNING},
    "method": dict.fromkeys(
        (
            *("gmr_lr_0.003", "gmr_lambda_2000", "puppeteer_untrained", "masrouter_untrained"),
            *("gmr_dot_no_halting", "gmr_lambda_10_no_halting", "gmr_lambda_50_no_halting"),
            *("gmr_dot_no_memory_gates", "gmr_lambda_10_no_memory_gates", "gmr_lambda_50_no_memory_gates"),
        ),
        "an entry of your own that extends another has it back (docs/gmr.md#running-variants)",
    ),
    "target": {
        "sensitivity": "optional artefacts are made by name, such as reports/router_bounds.md",
        "cells": "`gmr forecast` needs no run of its own",
    },
    "command": {
        "simulate": _SIMULATED,
        "GMR_SIMULATED_URL": _SIMULATED,
        "--from": "a forecast is from the finished cells of its preset, else from config/forecast.csv",
        "--timing": "hw_cost has the seconds of the test itself, `gmr report hw_cost`",
    },
}


def replacement(kind: str, name: str) -> str:
    """Say what replaced a former name, such as ``is gone; ...``. Empty for other names."""
    if new := RENAMED.get(kind, {}).get(name):
        return f"is {new} now"
    instead = GONE.get(kind, {}).get(name)
    return f"is gone; {instead}" if instead else ""


def present_names(kind: str, names: Iterable[str], known: Container[str] = ()) -> tuple[str, ...]:
    """Translate former names in a file to current ones. Removed names are dropped with a warning."""
    gone = {name: GONE[kind][name] for name in names if name in GONE[kind] and name not in known}
    if gone:
        logger.warning("left out, since it is gone: %s", "; ".join(f"{kind} {name} ({gone[name]})" for name in gone))
    return tuple(dict.fromkeys(RENAMED.get(kind, {}).get(name, name) for name in names if name not in gone))
