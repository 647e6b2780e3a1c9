"""Files: written whole or not at all, YAML read strictly, the records it declares checked."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import secrets
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar

import orjson
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
from pydantic_core import ErrorDetails, PydanticCustomError

from harness.errors import UserError, hint
from harness.unfinished import UNFINISHED

ROOT = Path(__file__).resolve().parent.parent
T = TypeVar("T")
Model = TypeVar("Model", bound=BaseModel)
# Looking for plugins reads the metadata of every installed package, whenever a command starts.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
_KEY = "key"
_ENTRIES = Annotated[dict[str, dict[str, Any]], MinLen(1)]
# What pydantic says, in words of YAML.
_WORDS = {
    "a valid tuple": "a list",
    "a valid dictionary": "a mapping",
    "a valid string": "text",
    "a valid boolean": "true or false",
    "a valid integer": "a whole number",
    "a valid number": "a number",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failed write inside the block into a UserError of one line."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error.strerror) from error


def unwritable(path: Path, reason: object) -> UserError:
    """Return the error for a file that cannot be written."""
    cure = "free space or fix the folder, then give the same command again (finished calls are kept)"
    return UserError(f"cannot write {path}: {reason}; {cure}")


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file that appears when the block ends, whole or not at all; UserError where it cannot be written."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        UNFINISHED.add(unfinished)
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
            UNFINISHED.discard(unfinished)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, which is not read into memory as a whole."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file whole or not at all, as :func:`whole_file`."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, except that a repeated key is an error instead of a silent overwrite, and 1e-4 a number."""

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
    """Read a YAML file; UserError with file and line if it is missing, no YAML, or repeats a key."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); restore the file or name another") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UserError(f"{path}: line {line}: {error.problem}; expected YAML, correct this line") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}; expected YAML") from error


def yaml_values(value: Any) -> Any:
    """Return a value from a command line with its numbers, booleans and nulls restored from strings."""
    if isinstance(value, Mapping):
        return {key: yaml_values(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [yaml_values(entry) for entry in value]
    if not isinstance(value, str):
        return value
    # Text such as "Model: maker" inside a value is no mapping.
    read = yaml_value(value)
    return value if isinstance(read, dict | list) else read


def yaml_value(text: str) -> Any:
    """Parse a value from a command line as YAML; text that is no YAML stays text."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError:
        return text


class Declaration(BaseModel):
    """A record that a file declares: no unknown field, no ``true`` for a number, no ``"3"`` for 3, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        """Refuse unknown fields with the nearest known one, which pydantic does not name."""
        if cls.model_config.get("extra") == "forbid" and isinstance(given, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for name in given:
                if name not in known:
                    shown = [field for field in known if field != _KEY]
                    text = f"unknown key {name!r}; {hint('key', str(name), shown)}"
                    raise PydanticCustomError("unknown", "{text}", {"text": text})
        return given


def _distinct(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} is there twice; leave one out")
    return values


# A list in a file; in a model, which does not change, a tuple.
Many = Annotated[tuple[T, ...], Strict(False)]
Distinct = Annotated[Many[T], MinLen(1), AfterValidator(_distinct)]
# A number that stays what it was in the file, 3 or 3.0, where its text is part of a result.
AsWritten = WrapValidator(lambda given, check: (check(given), given)[1])
Percentage = Annotated[float, Field(ge=0, le=100)]
Share = Annotated[float, Field(ge=0, le=1)]
Word = Annotated[str, Field(pattern=r"^\S+$")]
Line = Annotated[str, Field(pattern=r"^\S[^\n]*\S$")]
Text = Annotated[str, MinLen(1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def read(path: Path, form: Any) -> Any:
    """Read a YAML file as a model or as ``dict[str, Model]``; UserError if it is not one, as from :func:`check`."""
    return check(read_yaml(path), form, path)


def read_entries(path: Path, form: type[Model]) -> dict[str, Model]:
    """Read the entries of a YAML file, each a model whose field ``key`` is its key in the file."""
    return check_entries(read_yaml(path), form, path)


def check_entries(document: Any, form: type[Model], where: object) -> dict[str, Model]:
    """Return the models of a document's entries, each with its ``key``; UserError for a bad entry or none at all."""
    entries = check(document, _ENTRIES, where)
    for key, entry in entries.items():
        if _KEY in entry:
            raise UserError(f"{where}: {key}: unknown key {_KEY!r}; leave it out, it is {key!r} already")
    keyed = {key: {_KEY: key, **entry} for key, entry in entries.items()}
    models: dict[str, Model] = check(keyed, dict[str, form], where)  # type: ignore[valid-type]
    return models


def check(document: Any, form: Any, where: object) -> Any:
    """Convert a parsed document to a type that pydantic knows; UserError in one line: ``where``, key, mistake."""
    try:
        return _adapter(form).validate_python(document)
    except ValidationError as error:
        raise UserError(f"{where}: {first_error(error)}") from None


@functools.cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    is_model = isinstance(form, type) and issubclass(form, BaseModel)
    return TypeAdapter(form, config=None if is_model else ConfigDict(strict=True))


def first_error(error: ValidationError) -> str:
    """Return the first error of a validation, with the keys that lead to it, on one line."""
    first = error.errors(include_url=False)[0]
    steps, reason = list(first["loc"]), _reason(first)
    if steps and steps[-1] == "[key]":
        steps = steps[:-2]
        reason = f"the key {reason}"
    keys = ".".join(map(str, steps))
    return " ".join(f"{keys}: {reason}".removeprefix(": ").split())


def _reason(error: ErrorDetails) -> str:
    match error["type"]:
        case "missing":
            return "missing; add it"
        case "unknown":
            return error["msg"]
        case "value_error":
            return str(error["ctx"]["error"])
    should = error["msg"].partition(" should ")[2].partition(" or instance of ")[0].partition(" after validation")[0]
    for theirs, ours in _WORDS.items():
        should = should.replace(theirs, ours)
    given = repr(error["input"])
    given = given if len(given) <= 120 else f"{given[:60]} ... {given[-60:]}"
    return f"{given} should {should or error['msg']}"


def digest(document: Any) -> str:
    """Return the SHA-256 of a JSON document, whatever the order of its keys."""
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
