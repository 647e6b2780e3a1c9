"""Checking a document against one of the schemas in ``analysis/schemas``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from harness.errors import UserError

if TYPE_CHECKING:
    import jsonschema

_FOLDER = Path(__file__).parent / "schemas"


def check(document: Any, schema: str, where: Path) -> None:
    """Refuse a document that its schema does not allow.

    Args:
        document: What was parsed.
        schema: Name of a file ``<schema>.schema.yaml``.
        where: The file the document came from, named in the error.

    Raises:
        UserError: Naming one offending place, always the same one.
    """
    found = _validator(schema).iter_errors(document)
    errors = sorted(found, key=lambda error: (error.json_path, error.message))
    if errors:
        place, reason = errors[0].json_path, " ".join(errors[0].message.split())[:200]
        raise UserError(
            f"{where}: {place}: {reason}; expected what analysis/schemas/{schema}.schema.yaml describes; "
            "correct the file or make it again"
        )


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    import jsonschema

    rules = yaml.safe_load((_FOLDER / f"{schema}.schema.yaml").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(rules)
