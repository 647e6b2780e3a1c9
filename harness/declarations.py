"""Declarations: records that a file states, checked by a pydantic model; a mistake is told in one line."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

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

from harness.errors import UserError
from harness.yaml_files import parse

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


class Declaration(BaseModel):
    """A record that a file declares: no unknown field, no ``true`` for a number, no ``"3"`` for 3, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        """Pydantic's own refusal names no field that might have been meant."""
        if cls.model_config.get("extra") == "forbid" and isinstance(given, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for name in given:
                if name not in known:
                    near = difflib.get_close_matches(str(name), known, 1)
                    shown = ", ".join(one for one in known if one != _KEY)
                    hint = f"did you mean {near[0]!r}?" if near else f"known: {shown}"
                    raise PydanticCustomError("unknown", "{text}", {"text": f"unknown key {name!r}; {hint}"})
        return given


def _distinct(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value!r} stands there twice; leave one out")
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
    """The content of a YAML file as a model, or as a mapping of models such as ``dict[str, Backbone]``.

    Raises:
        UserError: The file is missing, is not YAML, repeats a key, or is not of this form.
    """
    return check(parse(path), form, path)


def read_entries(path: Path, form: type[Model]) -> dict[str, Model]:
    """The entries of a YAML file, each a model with its own key as the field ``key``.

    Raises:
        UserError: As :func:`read`, or the file has no entry.
    """
    return check_entries(parse(path), form, path)


def check_entries(document: Any, form: type[Model], where: object) -> dict[str, Model]:
    """The same of a document that has been read.

    Raises:
        UserError: It has no entry, or one is not of this form.
    """
    entries = check(document, _ENTRIES, where)
    for key, entry in entries.items():
        if _KEY in entry:
            raise UserError(
                f"{where}: {key}: unknown key {_KEY!r}; the entry has the key {key!r} already, leave it out"
            )
    keyed = {key: {_KEY: key, **entry} for key, entry in entries.items()}
    models: dict[str, Model] = check(keyed, dict[str, form], where)  # type: ignore[valid-type]
    return models


def check(document: Any, form: Any, where: object) -> Any:
    """A document as a model, or as a mapping of models.

    Args:
        document: Parsed YAML or JSON.
        form: The model, or another type that pydantic knows.
        where: Its origin, for the message.

    Raises:
        UserError: One line that names the origin, the key, what stands there and what should.
    """
    try:
        return _adapter(form).validate_python(document)
    except ValidationError as error:
        raise UserError(f"{where}: {told(error)}") from None


@functools.cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    is_model = isinstance(form, type) and issubclass(form, BaseModel)
    return TypeAdapter(form, config=None if is_model else ConfigDict(strict=True))


def told(error: ValidationError) -> str:
    """The first mistake of several, on one line."""
    first = error.errors(include_url=False)[0]
    steps, reason = list(first["loc"]), _reason(first)
    if steps and steps[-1] == "[key]":
        steps = steps[:-2]
        reason = f"the key {reason}"
    place = ".".join(map(str, steps))
    return " ".join(f"{place}: {reason}".removeprefix(": ").split())


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
    return f"{_short(repr(error['input']))} should {should or error['msg']}{_near(error)}"


def _near(error: ErrorDetails) -> str:
    choices = error["ctx"]["expected"].split("'")[1::2] if error["type"] == "literal_error" else []
    near = difflib.get_close_matches(str(error["input"]), choices, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _short(text: str, limit: int = 120) -> str:
    return text if len(text) <= limit else f"{text[: limit // 2]} ... {text[-limit // 2 :]}"
