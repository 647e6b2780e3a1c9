"""A recording claims only what can be checked. Each file here is forged from a few calls of its own."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from zipfile import ZipFile

import orjson
import pytest

from harness.database import Cache
from harness.errors import UserError
from harness.llm.archive import METADATA, checksum, odd_counts
from harness.llm.call_log import CallLog, CallLogReader, copy
from harness.llm.encoder import EMBEDDING, Embeddings, Encoded, VectorCheck
from harness.llm.recordings import Recording, Recordings
from harness.llm.request import Message, Reply, Request
from harness.runner.layout import Cell, name_of
from tests.fake_encoder import FakeEncoder

pytestmark = pytest.mark.usefixtures("folder")
SINGLE, AGAIN, ROUTER = Cell("single", "b", "m", 0), Cell("single", "b", "m", 1), Cell("knn_router", "b", "pool", 0)
ASKED = Request("m", None, (Message("user", "2 + 2?"),))
SAMPLED = replace(ASKED, temperature=0.7)
FOUR, FIVE = (Reply(text, 10, 1, "stop", "m") for text in ("4", "5"))
Calls = Sequence[tuple[Request, Reply]]


def recorded(calls: Mapping[Cell, Calls], *, prompts: bool = True, forged: str = "") -> Path:
    """Write a bundle with the calls of some cells. ``forged``: a change of its logs in SQL."""
    files = {"config/config.yaml": b"preset: mine"}
    for cell, its in calls.items():
        log = Path(mkdtemp(dir="."), "calls.sqlite")
        asyncio.run(write(log, its))
        copy(log, Path("packed.sqlite"), prompts=prompts)
        with closing(sqlite3.connect("packed.sqlite")) as database:
            database.executescript(forged)
        files[f"results/mine/{name_of(cell)}/calls.sqlite"] = Path("packed.sqlite").read_bytes()
    entities = [{"@id": name, "@type": "File", **checksum(content)} for name, content in files.items()]
    whole = {"@id": "./", "description": "x", "hasPart": []}
    with ZipFile("mine.zip", "w") as archive:
        for name, content in {**files, METADATA: orjson.dumps({"@graph": [whole, *entities]})}.items():
            archive.writestr(name, content)
    return Path("mine.zip").absolute()


async def write(path: Path, calls: Calls) -> None:
    with CallLog(path) as log:
        for request, reply in calls:
            await log.append(request, reply)


@pytest.mark.parametrize(
    ("request_", "reply", "prompts", "is_refused"),
    [
        (ASKED, FIVE, True, False),
        (ASKED, Reply.failed("m", "no server"), True, False),
        (SAMPLED, FOUR, True, False),
        (ASKED, FOUR, True, True),
        (ASKED, FOUR, False, True),
        (SAMPLED, FOUR, False, True),  # Without its prompt, the temperature of a call proves nothing.
    ],
)
def test_two_replies_to_one_call_are_refused(request_: Request, reply: Reply, prompts: bool, is_refused: bool) -> None:
    calls = {SINGLE: [(request_, FIVE)], ROUTER: [(request_, reply)]}
    path = recorded(calls, prompts=prompts, forged="UPDATE calls SET checksum = 1")
    cells = "knn_router/b/pool/seed0 and single/b/m/seed0"
    said = f"two replies to call {request_.key[:12]} at temperature 0, in {cells}, so that"
    with pytest.raises(UserError, match=said) if is_refused else nullcontext():
        Recording(path)


def test_a_repetition_answers_itself_alone() -> None:
    other = replace(ASKED, draw=1)
    recording = Recording(recorded({SINGLE: [(ASKED, FIVE)], AGAIN: [(ASKED, FOUR), (other, FOUR)]}))
    for cell, replies in {SINGLE: [FIVE, None], ROUTER: [FIVE, None], AGAIN: [FOUR, FOUR]}.items():
        with Recordings([recording], cell) as found:
            assert [found.get(request.key) for request in (ASKED, other)] == replies


def test_the_same_cell_answers_first_and_two_replies_in_a_folder_are_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recordings = [Recording(recorded({cell: [(ASKED, reply)]})) for cell, reply in ((ROUTER, FIVE), (SINGLE, FOUR))]
    for cell, reply in {ROUTER: FIVE, SINGLE: FOUR, replace(SINGLE, method="cot"): FIVE}.items():
        with Recordings(recordings, cell) as found:
            assert found.get(ASKED.key) == reply
    with ZipFile(recorded({SINGLE: [(ASKED, FOUR)], ROUTER: [(ASKED, FIVE)]})) as bundle:
        bundle.extractall("theirs")
    Recording(Path("theirs"))
    assert f"theirs has two replies to call {ASKED.key[:12]} at temperature 0" in caplog.text


@pytest.mark.parametrize(
    "forged",
    [
        "UPDATE calls SET prompt_tokens = -1",
        "UPDATE calls SET request = zeroblob(70000000)",
        "ALTER TABLE calls RENAME TO c; CREATE VIEW calls AS SELECT * FROM c",
        "ALTER TABLE calls ADD COLUMN g AS (zeroblob(1000000000))",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "CREATE INDEX i ON calls (abs(asked))",
    ],
)
def test_a_log_with_values_that_no_run_writes_is_one_line(forged: str) -> None:
    path = recorded({SINGLE: [(ASKED, FOUR)]}, forged=forged)
    with pytest.raises(UserError, match="is damaged"), Recordings([Recording(path)], SINGLE) as found:
        found.get(ASKED.key)


def test_a_prompt_that_was_not_sent_is_refused_and_never_shown() -> None:
    calls = {SINGLE: [(ASKED, FOUR)]}
    Recording(recorded(calls, prompts=False))
    path = recorded(calls, forged="UPDATE calls SET request = replace(request, '2 + 2?', '1 + 1?')")
    with pytest.raises(UserError, match=f"the stored prompt of call {ASKED.key} is not the one that was sent"):
        Recording(path)
    with CallLogReader(Path("packed.sqlite")) as log, pytest.raises(UserError, match="is not the one that was sent"):
        log.texts(ASKED.key)


@pytest.mark.parametrize(
    ("share", "asked", "written", "named"),
    [
        (1.0, int, int, ""),
        (0.7, lambda length: 71, lambda length: 40, "70 of 100 calls of m have the same token counts, 71 and 40"),
        (1.0, int, lambda length: length * 5, "a reply of m has 0.8 bytes per token"),
        (1.0, lambda length: length // 2, int, "a prompt of m has 8.0 bytes per token"),
        (0.1, int, lambda length: 1, "a reply of m has 4.0 bytes per token in the middle, 10% are far"),
    ],
)
def test_odd_token_counts(share: float, asked: Callable[[int], int], written: Callable[[int], int], named: str) -> None:
    calls = list[tuple[Request, Reply]]()
    for number in range(100):
        length = 40 + number % 25 * 2
        counts = (asked(length), written(length)) if number % 10 < 10 * share else (length, length)
        request = replace(ASKED, messages=(Message("user", f"{number:04}" * length),))
        calls.append((request, Reply("word" * length, *counts, "stop", "m")))
    recording = Recording(recorded({SINGLE: calls}))
    odd = [*odd_counts(recording.logs())]
    assert [line.startswith(named) for line in odd] == [True] * bool(named)


class Forging(FakeEncoder):
    """Encoder that writes into the first coordinate what a router would like to know. The cosine is 0.999."""

    def encode(self, text: str) -> Encoded:
        encoded = super().encode(text)
        encoded.vector[0] += 0.04
        return encoded


async def checked(theirs_by: FakeEncoder, check: VectorCheck) -> list[str]:
    """Embed 100 texts by recorded vectors. Return the texts that were computed again."""
    texts, encoder = [f"text {number}" for number in range(100)], FakeEncoder()
    with Cache(Path(mkdtemp(dir="."), "theirs")) as theirs, Cache(Path(mkdtemp(dir="."), "mine")) as mine:
        async with Embeddings(theirs_by, mine, theirs) as maker:
            for text in texts:
                await maker.embed(text)
        async with Embeddings(encoder, mine, mine, lambda key: theirs.get("embeddings", key), check) as embeddings:
            for text in texts * 2:
                assert len((await embeddings.embed(text)).vector) == EMBEDDING
            await embeddings.check_recorded()
    return encoder.encoded


async def test_a_replay_computes_all_recorded_vectors_again_and_a_run_a_random_sample() -> None:
    samples = []
    for most in (64, 64, float("inf")):
        check = VectorCheck(most=most)
        samples.append(await checked(FakeEncoder(), check))
        assert (check.used, len(check.passed)) == (100, min(most, 100))
        assert len({*samples[-1]}) == len(samples[-1]) == min(most, 100)
    assert sorted(samples[0]) != sorted(samples[1])
    # Another cell of the same replay computes none of them again.
    assert await checked(FakeEncoder(), check) == []


async def test_vectors_that_could_tell_the_right_model_are_refused() -> None:
    with pytest.raises(UserError, match=r"the recorded vector of 'text .*' is not the encoder's"):
        await checked(Forging(), VectorCheck())
