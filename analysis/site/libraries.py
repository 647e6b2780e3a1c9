"""The libraries of the pages, taken from installed packages when a site is made: plotly and DataTables."""

from __future__ import annotations

import re
from importlib.resources import files

from harness.errors import UserError

_EXPORTS = re.compile(r"export\{(?P<names>[^{}]*)\};")


def libraries() -> dict[str, str]:
    """The text of every file below ``lib/``, by name.

    Raises:
        UserError: A package has another shape than this version of the suite knows.
    """
    bundle = files("itables") / "html"
    return {
        "plotly.min.js": (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8"),
        "datatables.js": classic((bundle / "dt_bundle.js").read_text(encoding="utf-8")),
        "datatables.css": (bundle / "dt_bundle.css").read_text(encoding="utf-8"),
    }


def classic(module: str) -> str:
    """The module of DataTables as a classic script, since a page from the disk may load no modules.

    The script sets ``window.DataTable`` to the default export.

    Args:
        module: The text of a module without imports, whose exports stand in one clause.

    Raises:
        UserError: It has another shape.
    """
    found = list(_EXPORTS.finditer(module))
    default = re.search(r"([\w$]+) as default\b", found[0]["names"]) if len(found) == 1 else None
    if default is None or re.search(r"^import\b|import\.meta", module, re.MULTILINE):
        raise UserError(
            "the installed itables bundles DataTables in another way; install the version in constraints.txt"
        )
    body = module[: found[0].start()] + f"window.DataTable={default[1]};" + module[found[0].end() :]
    return f'(()=>{{"use strict";\n{body}\n}})();\n'
