"""Answering a prompt that carries a JSON schema: an instance drawn from the schema, now and then a broken one."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness import rng
from harness.rng import Stream
from harness.simulator.incoming import RefusedError
from harness.simulator.prose import vocabulary

Schema = Mapping[str, Any]

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*?)```", re.DOTALL)
# A draw ignores some keywords (patterns, formats, conditions), so it is checked, and repeated if need be.
_ATTEMPTS = 16
_DEEPEST = 8
_MOST_EXTRA_ITEMS = 2
_WORDS = (3, 10)
_NUMBERS = 100


def find_schema(request: Mapping[str, Any]) -> Schema | None:
    """The JSON schema of a request: in ``response_format``, else the last fenced one of its messages.

    Raises:
        RefusedError: ``response_format`` asks for a schema and holds none.
    """
    wanted = request.get("response_format")
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        return _asked(wanted)
    for message in reversed(request["messages"]):
        for block in reversed(_FENCED.findall(message["content"])):
            if (schema := _parse(block)) is not None:
                return schema
    return None


def _asked(response_format: Mapping[str, Any]) -> Schema:
    named = response_format.get("json_schema")
    schema = named.get("schema") if isinstance(named, Mapping) else None
    if not isinstance(schema, Mapping) or not _is_sound(schema):
        raise RefusedError(400, "response_format.json_schema.schema must be a JSON Schema", "response_format")
    return schema


def _is_sound(schema: Schema) -> bool:
    import jsonschema

    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError:
        return False
    return True


@functools.lru_cache(maxsize=256)
def _parse(block: str) -> Schema | None:
    try:
        value = json.loads(block)
    except ValueError:
        return None
    is_schema = isinstance(value, dict) and ("$schema" in value or isinstance(value.get("properties"), dict))
    return value if is_schema and _is_sound(value) else None


def answer(schema: Schema, topic: str, invalid_share: float, key: str) -> str:
    """A JSON text: an instance of the schema, except for a stated share that breaks it.

    Args:
        schema: JSON Schema, draft 2020-12.
        topic: Text that free strings borrow their words from.
        invalid_share: Share of replies that are no instance.
        key: Identity of the request; fixes every draw.

    Raises:
        RefusedError: The schema refers to itself without end.
    """
    try:
        text = json.dumps(_instance(schema, topic, key), ensure_ascii=False)
    except RecursionError as error:
        raise RefusedError(400, "the JSON schema refers to itself without end", "response_format") from error
    if rng.uniform("schema validity", key) >= invalid_share:
        return text
    # The two commonest slips: the text ends too early, or explanations surround it.
    return f"{text[: len(text) // 2]} ..." if rng.index(2, "slip", key) else f"Here is what I suggest: {text}."


def _instance(schema: Schema, topic: str, key: str) -> Any:
    import jsonschema
    from referencing.exceptions import Unresolvable

    validator = jsonschema.Draft202012Validator(schema)
    value: Any = None
    for attempt in range(_ATTEMPTS):
        value = _Draw(schema, topic, Stream("schema", str(attempt), key)).value(schema, 0)
        try:
            if validator.is_valid(value):
                break
        except Unresolvable:
            break
    return value


class _Draw:
    """One walk down a schema."""

    def __init__(self, root: Schema, topic: str, stream: Stream) -> None:
        self._root = root
        self._words = vocabulary(topic).words
        self._stream = stream

    def value(self, schema: Schema | bool, depth: int) -> Any:
        # Some schemas have no finite instance.
        if isinstance(schema, bool) or depth > 2 * _DEEPEST:
            return None
        schema = self._resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self._one(schema["enum"])
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                rest = {name: value for name, value in schema.items() if name != choice}
                return self.value(_merged([rest, self._branch(schema[choice], depth)]), depth)
        return self._typed(schema, depth)

    def _branch(self, branches: Sequence[Schema], depth: int) -> Schema:
        """One of several schemas; deep down the first without parts, so that recursive schemas come to an end."""
        if depth >= _DEEPEST:
            return next((branch for branch in branches if branch.get("type") not in {"object", "array"}), branches[0])
        return self._one(branches)

    def _typed(self, schema: Schema, depth: int) -> Any:
        match self._type(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number" as kind:
                return self._number(schema, whole=kind == "integer")
            case "boolean":
                return self._stream.below(2) == 1
            case "null":
                return None
        return self._string(schema)

    def _type(self, schema: Schema) -> str:
        declared = schema.get("type")
        if isinstance(declared, list):
            return str(self._one(declared))
        if declared is None:
            return "object" if "properties" in schema else "array" if "items" in schema else "string"
        return str(declared)

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        wanted = [name for name in properties if name in required or (depth < _DEEPEST and self._stream.below(2))]
        missing = [name for name in required if name not in properties]
        return {name: self.value(properties.get(name, {}), depth + 1) for name in [*wanted, *missing]}

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        prefix = [self.value(part, depth + 1) for part in schema.get("prefixItems", [])]
        least = schema.get("minItems", 0)
        extra = 0 if depth >= _DEEPEST else self._stream.below(_MOST_EXTRA_ITEMS + 1)
        length = min(max(least, len(prefix)) + extra, schema.get("maxItems", math.inf))
        items = schema.get("items", {})
        # False means that nothing may follow the prefix.
        return (
            prefix
            if items is False
            else prefix + [self.value(items, depth + 1) for _ in range(len(prefix), int(length))]
        )

    def _number(self, schema: Schema, *, whole: bool) -> int | float:
        step = schema.get("multipleOf", 1 if whole else 0.5)
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        low, high = _bounds(low, high)
        first = math.floor(low / step) + 1 if "exclusiveMinimum" in schema else math.ceil(low / step)
        last = math.ceil(high / step) - 1 if "exclusiveMaximum" in schema else math.floor(high / step)
        if last < first:
            return (low + high) / 2
        return step * (first + self._stream.below(min(last - first + 1, _NUMBERS)))

    def _string(self, schema: Schema) -> str:
        shortest, longest = _WORDS
        length = shortest + self._stream.below(longest - shortest + 1)
        start = self._stream.below(max(1, len(self._words) - length + 1))
        text = " ".join(self._words[start : start + length])
        text = text.ljust(schema.get("minLength", 0), ".")
        return text[: schema.get("maxLength", len(text))]

    def _one(self, choices: Sequence[Any]) -> Any:
        return choices[self._stream.below(len(choices))]

    def _resolved(self, schema: Schema) -> Schema:
        """The schema with references followed and ``allOf`` folded in."""
        if "$ref" in schema:
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            return self._resolved(_merged([_pointed_at(self._root, schema["$ref"]), rest]))
        if "allOf" in schema:
            rest = {name: value for name, value in schema.items() if name != "allOf"}
            return _merged([rest, *(self._resolved(part) for part in schema["allOf"])])
        return schema


def _pointed_at(root: Schema, reference: str) -> Schema:
    """The part of a document a local reference names; anything goes for one that cannot be followed."""
    part: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        part = part.get(name, {}) if isinstance(part, Mapping) and step else part
    return part if isinstance(part, Mapping) else {}


def _merged(schemas: Sequence[Schema]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for schema in schemas:
        for name, value in schema.items():
            if name == "properties" and name in merged:
                merged[name] = {**merged[name], **value}
            elif name == "required" and name in merged:
                merged[name] = [*merged[name], *(part for part in value if part not in merged[name])]
            else:
                merged[name] = value
    return merged


def _bounds(low: float | None, high: float | None) -> tuple[float, float]:
    if low is not None:
        return low, low + _NUMBERS if high is None else high
    return (0.0, float(_NUMBERS)) if high is None else (high - _NUMBERS, high)
