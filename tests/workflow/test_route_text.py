"""The pages of ``gmr route``, to the letter."""

from hypothesis import given
from hypothesis import strategies as st

from analysis.trajectories import Choice, Gate, Said, Step
from gmr.outlook import Option, Outlook
from harness.agents.trajectory import Call
from harness.benchmarks.items import Status, Verdict
from workflow.route import About, Grade, Walk
from workflow.route_text import Page

ABOUT = About("results/r.safetensors", "gmr", "gsm_hard", 0, 1, "smoke", True, None, "How many?")


def test_the_outlook_as_printed() -> None:
    roles = tuple(Option(f"Math/R{number}", p) for number, p in enumerate([0.4, 0.2, 0.1, 0.1, 0.1, 0.06, 0.04]))
    found = Outlook(roles, (Option("small", 0.25), Option("large", 0.75)))
    assert Page(80, full=False).show(ABOUT, found) == (
        "gmr for gsm_hard, trained on SIMULATED backbones: preset smoke, seed 0, 1 epoch\n"
        "results/r.safetensors\n"
        "\n"
        "Question\n"
        "  How many?\n"
        "\n"
        "Step 1, role\n"
        "  Math/R0                           40.0 %  ████████████████████████\n"
        "  Math/R1                           20.0 %  ████████████\n"
        "  Math/R2                           10.0 %  ██████\n"
        "  Math/R3                           10.0 %  ██████\n"
        "  Math/R4                           10.0 %  ██████\n"
        "  2 others                          10.0 %\n"
        "\n"
        "Step 1, backbone of Math/R0\n"
        "  small                             25.0 %  ████████\n"
        "  large                             75.0 %  ████████████████████████\n"
        "\n"
        "No model was asked. Later steps depend on what the models reply: --run asks them."
    )


def call(step: int, key: str, *, is_step: bool = True, purpose: str = "act", error: str | None = None) -> Call:
    return Call(step, purpose, 0, "small", "Math/R0" if is_step else "", key, 1000, 20, 0.25, is_step, "stop", error)


def chosen(name: str, choice: str, probability: float) -> Choice:
    return Choice(name, 0, choice, 2, probability)


def test_a_trajectory_as_printed() -> None:
    long = "one\n  two\nthree\n\nfive\nsix\nseven"
    steps = (
        Step(
            1,
            chosen("role", "Math/R0", 0.5),
            chosen("backbone", "small", 0.25),
            (),
            {},
            Gate(True, 0.6),
            Gate(False, 0.3),
            (Said(call(1, "a"), None, long),),
        ),
        Step(
            2,
            chosen("role", "Math/R1", 1.0),
            chosen("backbone", "small", 0.125),
            (),
            {1: Gate(False, 0.4)},
            Gate(False, 0.2),
            Gate(True, None),
            (Said(call(2, "b"), None, "looking"), Said(call(2, "c", purpose="second_call"), None, "short")),
        ),
    )
    found = Walk(
        preset="smoke",
        simulated=True,
        decode="sample",
        steps=steps,
        aggregator=Said(call(3, "d", is_step=False), None, "The answer is 3"),
        aggregated=(1,),
        answer="The answer is 3",
        cost_steps=0.75,
        cost_total=1.0,
        grade=Grade("4.0", Verdict(False, "3", Status.GRADED)),
    )
    about = About("results/r.safetensors", "gmr", "gsm_hard", 0, 2, "smoke", False, "17", "How many?")
    assert Page(80, full=False).show(about, found) == (
        "SIMULATED BACKBONES: no model was asked, and the replies are made up.\n"
        "\n"
        "gmr for gsm_hard, trained on models: preset smoke, seed 0, 2 epochs\n"
        "results/r.safetensors\n"
        "\n"
        "Question 17\n"
        "  How many?\n"
        "\n"
        "Run with the simulated backbones of preset smoke, sampled choices.\n"
        "\n"
        "Step 1: Math/R0 (50.0 %) on small (25.0 %)\n"
        "  memory     empty\n"
        "  reply      one\n"
        "               two\n"
        "             three\n"
        "\n"
        "             five\n"
        "             ... (2 more lines, --full shows all)\n"
        "  write      60.0 %, stored\n"
        "  halt       30.0 %, goes on\n"
        "  spent      1,000 + 20 tokens, cost 0.25\n"
        "\n"
        "Step 2: Math/R1 (100.0 %) on small (12.5 %)\n"
        "  memory     step 1: 40.0 %, left out\n"
        "  act        looking\n"
        "  second call short\n"
        "  write      20.0 %, refused\n"
        "  halt       halts, without a draw\n"
        "  spent      2,000 + 40 tokens in 2 calls, cost 0.5\n"
        "\n"
        "Aggregator: small, the backbone chosen most often\n"
        "  read       step 1\n"
        "  spent      1,000 + 20 tokens, cost 0.25\n"
        "\n"
        "Answer\n"
        "  The answer is 3\n"
        "\n"
        "  gold       4.0\n"
        "  extracted  3\n"
        "  verdict    wrong (graded)\n"
        "\n"
        "Cost 1, of this 0.75 in 2 steps and 0.25 in the aggregation."
    )
    assert "             six\n             seven\n" in Page(80, full=True).show(about, found)


@given(text=st.text(alphabet="ab \t\n`", max_size=400), width=st.integers(60, 120))
def test_a_question_never_passes_the_edge_and_is_short_unless_wanted_whole(text: str, width: int) -> None:
    about = About("r", "gmr", "gsm_hard", 0, 1, "smoke", True, None, text)
    found = Outlook((Option("r", 1.0),), (Option("b", 1.0),))
    block = Page(width, full=False).show(about, found).split("Question\n")[1].split("\n\nStep 1, role")[0].split("\n")
    assert len(block) <= 6
    assert all(len(line.expandtabs()) <= width for line in block)
    whole = Page(width, full=True).show(about, found)
    assert all(line.rstrip() in whole for line in text.splitlines())
