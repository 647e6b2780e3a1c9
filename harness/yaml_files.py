"""Declarations kept as YAML: read strictly or refused with one line."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Hashable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from harness.errors import UserError


class _UniqueKeyLoader(yaml.SafeLoader):
    """The safe loader, except that a repeated key is an error instead of a silent overwrite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    problem=f"duplicate key {key.value!r}", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep=deep)


def read_yaml(path: Path, schema: Mapping[str, Any]) -> Any:
    """The content of a YAML file that satisfies a JSON schema.

    Args:
        path: The file.
        schema: What the file must look like (JSON Schema, draft 2020-12).

    Raises:
        UserError: The file is missing, is not YAML, repeats a key or breaks the schema. The message names the
            file and the place in it.
    """
    document = parse(path)
    check(document, schema, str(path))
    return document


def check(document: Any, schema: Mapping[str, Any], where: str) -> None:
    """Refuse a document that breaks a JSON schema.

    Args:
        document: Parsed YAML.
        schema: What it must look like.
        where: Its origin, for the message.

    Raises:
        UserError: Names the place of the error and, for a mistyped key, the nearest valid one.
    """
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(document))
    if error is not None:
        place = " > ".join(str(step) for step in error.absolute_path) or "top level"
        raise UserError(f"{where}: at {place}: {_shorten(error.message)}; {_advice(error)}")


def parse(path: Path) -> Any:
    """The content of a YAML file, whatever it is; raises :class:`UserError` where it is not YAML."""
    return copy.deepcopy(_parsed(path, changed_at(path)))


def changed_at(path: Path) -> int:
    """When a file was changed last, in nanoseconds; 0 where there is none."""
    return path.stat().st_mtime_ns if path.exists() else 0


@lru_cache
def _parsed(path: Path, _changed_at: int) -> Any:
    """Read once for every state of the file: planning a DAG asks thousands of times."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)  # noqa: S506 - a SafeLoader
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); restore the file or name another") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise UserError(f"{path}: line {line}: {error.problem}; expected YAML, correct this line") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}; expected YAML") from error


def _advice(error: jsonschema.ValidationError) -> str:
    if error.validator != "additionalProperties" or not isinstance(error.instance, dict):
        return "correct this entry"
    known = list(error.schema.get("properties", {}))
    near = [
        match for key in error.instance if key not in known for match in difflib.get_close_matches(str(key), known, 1)
    ]
    return f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"


def _shorten(message: str, limit: int = 200) -> str:
    """The message on one line: a validator quotes the offending value whole, however long it is."""
    line = " ".join(message.split())
    return line if len(line) <= limit else f"{line[: limit // 2]} ... {line[-limit // 2 :]}"


def typed(value: Any) -> Any:
    """Numbers, booleans and nulls restored in a value that a command line has turned into strings."""
    if isinstance(value, Mapping):
        return {key: typed(part) for key, part in value.items()}
    if isinstance(value, list):
        return [typed(part) for part in value]
    return from_text(value) if isinstance(value, str) else value


def from_text(text: str) -> Any:
    """A value given on a command line: YAML where it is YAML, else the text itself."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text
