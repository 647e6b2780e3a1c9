"""Data of the site: values in files that a page opened from the disk can load when they are wanted.

Such a page may not fetch a file, but it may run one as a script. So a chunk is a script of one line that hands its
value over to ``load.js``: as JSON, compressed, in base64. The line is plain ASCII whatever is in the value, and
nothing of the value is ever read as a script or as markup.
"""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

from harness.files import writing

_LEVEL = 9


def write_chunk(data: Path, name: str, value: object) -> Path:
    """Write one chunk; equal values give equal bytes.

    Args:
        data: The folder of all chunks of a site.
        name: What the page asks for, as in ``training/gmr``; its parts are folders and a file.
        value: What JSON can say, and no number that is not finite. Texts may hold anything, lone surrogates included.

    Returns:
        The file.

    Raises:
        ValueError: A number is not finite.
        UserError: The disk is full, or the folder cannot be written.
    """
    # Escaped, because a lone surrogate has no UTF-8.
    content = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(content.encode("ascii"), _LEVEL)).decode("ascii")
    path = data / f"{name}.js"
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'GMR.put({json.dumps(name)},"{packed}");\n', encoding="ascii")
    return path
