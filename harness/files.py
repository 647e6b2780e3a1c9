"""Atomic writes, strict YAML, and validation of declared records."""

import functools
import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn, TypeVar

import orjson
import psutil
import yaml
from annotated_types import MinLen
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    WrapValidator,
    model_validator,
)

from harness.errors import UserError, unknown

ROOT = Path(__file__).resolve().parent.parent
T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
# Plugin discovery reads the metadata of every installed package at each start.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
# Temporary files, to delete if this process exits without unwinding.
_unfinished: set[Path] = set()
_KEY = "key"
_ENTRIES = Annotated[dict[str, dict[str, Any]], MinLen(1)]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make the folder of a file, and convert OSError in the block to a one-line UserError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise unwritable(path, error.strerror) from error


def unwritable(path: Path, reason: object) -> UserError:
    cure = "free space or fix the folder, then give the same command again (finished calls are kept)"
    return UserError(f"cannot write {path}: {reason}; {cure}")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file atomically: it appears when the block ends without error. Raises UserError if writing fails."""
    with writing(path):
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        _unfinished.add(unfinished)
        try:
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        finally:
            _unfinished.discard(unfinished)


def exit_now(status: int) -> NoReturn:
    """Delete temporary files and exit at once."""
    for path in list(_unfinished):
        path.unlink(missing_ok=True)
    os._exit(status)


def temporary_prefix(kind: str) -> str:
    """Return a prefix for temporary files of this process. Deletes those of killed processes of this host and user."""
    host = socket.gethostname()
    for path in Path(tempfile.gettempdir()).glob(f"gmr-*-{host}-*-*"):
        with suppress(OSError, ValueError):
            if path.lstat().st_uid == os.getuid() and not psutil.pid_exists(int(path.name.split("-")[-2])):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    return f"gmr-{kind}-{host}-{os.getpid()}-"


def sha256(path: Path) -> str:
    """Hash a file without reading it into memory at once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file atomically. Raises UserError if writing fails."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Safe loader in which a duplicate key is an error and 1e-4 is a number."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"duplicate key {key.value!r}", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_yaml(path: Path) -> Any:
    """Read a YAML file. If it is missing, invalid or has a duplicate key, the UserError names file and line."""
    try:
        with path.open("rb") as file:
            return yaml.load(file, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); restore the file or name another") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}; expected YAML, correct this line") from error


def yaml_values(value: Any) -> Any:
    """Convert the strings in a command-line value to numbers, booleans and nulls."""
    if isinstance(value, Mapping):
        return {key: yaml_values(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [yaml_values(entry) for entry in value]
    # Text such as "Model: maker" inside a value stays text.
    return value if not isinstance(value, str) or isinstance(read := yaml_value(value), dict | list) else read


def yaml_value(text: str) -> Any:
    """Parse a command-line value as YAML. Text that is not YAML stays text."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError:
        return text


class Declaration(BaseModel):
    """Immutable record read from a file. Unknown fields and implicit type conversions are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        """Suggest the nearest known field for an unknown field, which pydantic does not do."""
        if cls.model_config.get("extra") == "forbid" and isinstance(given, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            if others := [name for name in given if name not in known]:
                raise ValueError(unknown("key", str(others[0]), [field for field in known if field != _KEY]))
        return given


def _distinct(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    if double := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"{double[0]!r} is there twice; leave one out")
    return values


# A list in the file, a tuple in the model.
Many = Annotated[tuple[T, ...], Strict(False)]
Distinct = Annotated[Many[T], MinLen(1), AfterValidator(_distinct)]
# A number printed as written in the file, 3 or 3.0, since its text is part of a result.
AsWritten = WrapValidator(lambda given, check: (check(given), given)[1])
Percentage = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]
Word = Annotated[str, Field(pattern=r"^\S+$")]
Line = Annotated[str, Field(pattern=r"^\S[^\n]*\S$")]
Text = Annotated[str, MinLen(1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def read(path: Path, form: Any) -> Any:
    """Read a YAML file as a model or ``dict[str, Model]``. Raises like :func:`check`."""
    return check(read_yaml(path), form, path)


def read_entries(path: Path, form: type[Model]) -> dict[str, Model]:
    """Read the entries of a YAML file. Each model's ``key`` is its key in the file."""
    return check_entries(read_yaml(path), form, path)


def check_entries(document: Any, form: type[Model], where: object) -> dict[str, Model]:
    """Validate the entries of a document, with their keys. Raises UserError if one is invalid or there is none."""
    entries = check(document, _ENTRIES, where)
    if double := [key for key, entry in entries.items() if _KEY in entry]:
        raise UserError(f"{where}: {double[0]}: leave out {_KEY!r}, which is {double[0]!r} already")
    keyed = {key: {_KEY: key, **entry} for key, entry in entries.items()}
    models: dict[str, Model] = check(keyed, dict[str, form], where)  # type: ignore[valid-type]
    return models


def check(document: Any, form: Any, where: object) -> Any:
    """Validate parsed YAML or JSON as a model or another pydantic type. UserErrors name ``where``, key and mistake."""
    try:
        return _adapter(form).validate_python(document)
    except ValidationError as error:
        raise UserError(f"{where}: {first_error(error)}") from None


@functools.cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    is_model = isinstance(form, type) and issubclass(form, BaseModel)
    return TypeAdapter(form, config=None if is_model else ConfigDict(strict=True))


def first_error(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    steps, reason, given = list(first["loc"]), first["msg"], repr(first["input"])
    # YAML's words.
    for word, own in (("Tuple", "List"), ("a valid tuple", "a list"), ("a valid dictionary", "a mapping")):
        reason = reason.replace(word, own)
    if first["type"] == "value_error":
        reason = str(first["ctx"]["error"])
    elif first["type"] != "missing":
        reason += f", not {given if len(given) <= 120 else f'{given[:60]} ... {given[-60:]}'}"
    if steps and steps[-1] == "[key]":
        steps = [*steps[:-2], "key"]
    keys = ".".join(map(str, steps))
    return " ".join(f"{keys}: {reason}".removeprefix(": ").split())


def digest(document: Any) -> str:
    """Hash a JSON document (SHA-256), independent of key order."""
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
