"""The file of a bundle: what tar makes of it, equal bytes, and no byte that can change unseen."""

import hashlib
import tarfile
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserError
from workflow.bundling import archive
from workflow.bundling.archive import Archive, Member

LONG = f"results/{'cells/' * 40}run.json"  # longer than the field of a tar header
CONTENTS = {
    "results/a.json": b"{}",
    "results/empty": b"",
    "results/sector": bytes(range(256)) * 2,
    LONG: b"x" * 700,
}


def made(folder: Path, contents: dict[str, bytes] = CONTENTS, facts: dict[str, object] | None = None) -> Path:
    """A bundle of some files, which lie under other names."""
    folder.mkdir(parents=True, exist_ok=True)
    members = []
    for number, (name, content) in enumerate(contents.items()):
        (folder / str(number)).write_bytes(content)
        members.append(Member(name, folder / str(number)))
    archive.write(folder / "b.tar", facts or {"preset": "smoke"}, members)
    return folder / "b.tar"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("whole"))


def test_tar_finds_the_manifest_first_then_every_file(whole: Path) -> None:
    with tarfile.open(whole) as tar:
        names = tar.getnames()
        read = {name: tar.extractfile(name).read() for name in names}  # type: ignore[union-attr]
        owners = {(one.mtime, one.uid, one.gid, one.uname, one.mode) for one in tar.getmembers()}
    assert names[:2] == ["manifest.json", "manifest.json.sha256"]
    assert names[2:] == sorted(CONTENTS)
    assert {name: read[name] for name in CONTENTS} == CONTENTS
    assert owners == {(0, 0, 0, "", 0o644)}
    manifest = orjson.loads(read["manifest.json"])
    assert manifest["preset"] == "smoke"
    assert {one["name"]: (one["size"], one["sha256"]) for one in manifest["files"]} == {
        name: (len(content), hashlib.sha256(content).hexdigest()) for name, content in CONTENTS.items()
    }
    assert read["manifest.json.sha256"].decode().strip() == hashlib.sha256(read["manifest.json"]).hexdigest()


def test_equal_files_in_another_order_make_equal_bytes(tmp_path: Path, whole: Path) -> None:
    assert made(tmp_path, dict(reversed(CONTENTS.items()))).read_bytes() == whole.read_bytes()


def test_what_is_unpacked_is_what_was_packed(tmp_path: Path, whole: Path) -> None:
    Archive(whole).unpack(tmp_path / "out")
    found = {path.relative_to(tmp_path / "out").as_posix(): path for path in (tmp_path / "out").rglob("*.*")}
    assert {name: (tmp_path / "out" / name).read_bytes() for name in CONTENTS} == CONTENTS
    assert orjson.loads(found["manifest.json"].read_bytes()) == Archive(whole).manifest


@settings(max_examples=300, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_no_byte_can_change_unseen(whole: Path, tmp_path_factory: pytest.TempPathFactory, place: float, change: int):
    content = bytearray(whole.read_bytes())
    content[int(place * len(content))] ^= change
    altered = tmp_path_factory.getbasetemp() / "altered.tar"
    altered.write_bytes(content)
    with pytest.raises(UserError, match=r"altered|no bundle"):
        Archive(altered).check()


def test_the_altered_file_is_named(tmp_path: Path, whole: Path) -> None:
    content = whole.read_bytes()
    at = content.index(bytes(range(256)))
    (tmp_path / "b.tar").write_bytes(content[:at] + b"\1" + content[at + 1 :])
    with pytest.raises(UserError, match="results/sector is not what its manifest says"):
        Archive(tmp_path / "b.tar").check()


@pytest.mark.parametrize("cut", [0, 100, 600, 3000, -1])
def test_a_bundle_that_was_cut_off_is_refused(tmp_path: Path, whole: Path, cut: int) -> None:
    (tmp_path / "b.tar").write_bytes(whole.read_bytes()[:cut])
    with pytest.raises(UserError, match=r"altered|no bundle"):
        Archive(tmp_path / "b.tar").check()


def test_a_bundle_with_something_behind_it_is_refused(tmp_path: Path, whole: Path) -> None:
    (tmp_path / "b.tar").write_bytes(whole.read_bytes() + b"\0")
    with pytest.raises(UserError, match="its end"):
        Archive(tmp_path / "b.tar").check()


@pytest.mark.parametrize("name", ["../outside", "/outside", "results/../../outside", "manifest.json", "a//b"])
def test_nothing_is_written_outside_the_folder(tmp_path: Path, name: str) -> None:
    bundle = made(tmp_path / "made", {name: b"x"})
    with pytest.raises(UserError, match="no place for a file of a bundle"):
        Archive(bundle).unpack(tmp_path / "deep" / "out")
    assert not (tmp_path / "deep" / "outside").exists()
    assert not (tmp_path / "outside").exists()


def test_a_file_that_changes_while_it_is_bundled_stops_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = archive.entry

    def entry(member: Member) -> dict[str, object]:
        known = before(member)
        member.path.write_bytes(member.path.read_bytes() + b"more")
        return known

    monkeypatch.setattr(archive, "entry", entry)
    with pytest.raises(UserError, match="changed while it was bundled"):
        made(tmp_path)
    assert not (tmp_path / "b.tar").exists()


def test_a_bundle_of_another_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FORMAT", 2)
    other = made(tmp_path)
    monkeypatch.undo()
    with pytest.raises(UserError, match="another version"):
        Archive(other)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*absent\.tar"):
        Archive(tmp_path / "absent.tar")
