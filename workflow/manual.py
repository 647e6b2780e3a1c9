"""What ``gmr --help`` says beyond the commands' own words: which belong together, examples, and what statuses mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from typer.core import TyperGroup

STATUSES: Mapping[int, str] = {
    0: "Done; where something was asked, the answer is yes.",
    1: "The answer is no: a check found a fault.",
    2: "A mistake in the command, or something it needs is missing; the last line says what to do.",
    3: "The sandbox itself failed, which says nothing of the program.",
    130: "Interrupted by Ctrl-C (143: by SIGTERM); what was finished is kept.",
}


class Entry(NamedTuple):
    """What the manual says of a command.

    Attributes:
        example: One use of it, as one types it.
        also: Statuses it may end with besides 0, 2 and 130, and what they say there.
    """

    example: str
    also: Mapping[int, str] = {}


PANELS: Mapping[str, Mapping[str, Entry]] = {
    "Run": {
        "forecast": Entry("gmr forecast --preset paper --from rehearsal"),
        "retry-errors": Entry("gmr retry-errors --preset smoke"),
    },
    "Read": {
        "show": Entry("gmr show gmr gsm_hard --preset smoke --wrong"),
        "site": Entry("gmr site --preset smoke"),
        "report": Entry("gmr report main_table --preset smoke"),
        "claims": Entry("gmr claims --published"),
        "ledger": Entry("gmr ledger --preset smoke"),
        "learning": Entry("gmr learning --preset learning"),
        "search-history": Entry("gmr search-history --preset embedded"),
        "route": Entry('gmr route --benchmark gsm_hard "How many are 3 and 4?"'),
        "pdf": Entry("gmr pdf reports/main_table.tex main_table.pdf"),
    },
    "Check": {
        "validate": Entry("gmr validate --benchmark math", {1: "a verdict is not as it should be"}),
        "regrade": Entry("gmr regrade --preset smoke"),
        "agreement": Entry("gmr agreement --benchmark gsm8k"),
        "flips": Entry("gmr flips --preset cpu_server --requests 20"),
        "grim": Entry("gmr grim"),
        "health": Entry("gmr health --preset paper"),
        "sandbox": Entry("gmr sandbox doctor", {1: "not passed, or not fit", 3: "the sandbox failed"}),
    },
    "Serve": {
        "simulate": Entry("gmr simulate --preset smoke"),
    },
    "Share": {
        "bundle": Entry("gmr bundle --preset smoke --out smoke.bundle.tar"),
        "check-bundle": Entry("gmr check-bundle smoke.bundle.tar"),
        "export": Entry("gmr export inspect --preset smoke"),
    },
    "Jobs of the DAG": {
        "data": Entry("gmr data --preset smoke --benchmark gsm_hard"),
        "world": Entry("gmr world --preset smoke"),
        "cell": Entry(
            "gmr cell --preset smoke --method single --benchmark gsm_hard --backbone qwen-2.5-14B",
        ),
        "time": Entry("gmr time --preset smoke --method single --benchmark gsm_hard --backbone qwen-2.5-14B"),
    },
}
EPILOG = "\n".join(
    [
        "Exit status",
        *(f"{status:>5}  {meaning}" for status, meaning in STATUSES.items()),
        "",
        "More: docs/command-line.md, and `gmr COMMAND --help`.",
    ]
)


class Manual(TyperGroup):
    """The commands in the order and the panels of the manual; one that it does not know comes first, in none."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        known = {name: (panel, entry) for panel, entries in PANELS.items() for name, entry in entries.items()}
        place = {name: number for number, name in enumerate(known)}
        self.commands = dict(sorted(self.commands.items(), key=lambda one: place.get(one[0], -1)))
        for name, command in self.commands.items():
            if name in known:
                panel, entry = known[name]
                command.rich_help_panel = panel  # type: ignore[attr-defined]
                command.epilog = epilog(entry)


def epilog(entry: Entry) -> str:
    """What stands below the options of a command."""
    also = [f"Status {status}: {meaning}." for status, meaning in entry.also.items()]
    return "\n".join([f"Example: {entry.example}", *also])
