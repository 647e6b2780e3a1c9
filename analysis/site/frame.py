"""The frame that every page of the site stands in: banner, navigation, style, scripts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from analysis.tables import SIMULATED

TEMPLATES = Path(__file__).with_name("templates")
ASSETS = Path(__file__).with_name("assets")
# Below the folder of a preset, with all that the pages need; only the index lies beside it.
FOLDER = "site"
_REAL = "REAL MODELS: the replies of the servers that are named under Provenance"


class Banner(NamedTuple):
    """A sentence that stands above every page.

    Attributes:
        kind: ``simulated`` or ``real``.
        words: What a reader must know before any number.
    """

    kind: str
    words: str


class Page(NamedTuple):
    """A page of the navigation.

    Attributes:
        key: What templates call it.
        title: What readers call it.
        path: From the folder of the preset.
    """

    key: str
    title: str
    path: str


PAGES = (
    Page("report", "Report", "index.html"),
    Page("explorer", "Explorer", f"{FOLDER}/explorer.html"),
    Page("training", "Training", f"{FOLDER}/training.html"),
    Page("deviations", "Deviations", f"{FOLDER}/deviations.html"),
)


@dataclass(frozen=True, slots=True)
class Site:
    """What every page says of the run, and where it finds the others.

    Attributes:
        preset: The run.
        banners: What its replies are.
        base: From the page to the folder of the preset: empty for the index, ``../`` for the pages below ``site/``.
    """

    preset: str
    banners: tuple[Banner, ...]
    base: str = "../"

    @classmethod
    def of(cls, preset: str, *, simulated: bool) -> Site:
        """The site of a run.

        Args:
            preset: Its name.
            simulated: Whether any of its backbones was simulated.
        """
        return cls(preset, (Banner("simulated", SIMULATED) if simulated else Banner("real", _REAL),))

    def at(self, base: str) -> Site:
        """The same for a page that lies elsewhere."""
        return replace(self, base=base)

    @property
    def mark(self) -> str:
        """A word for titles and pictures, such as ``SIMULATED``; nothing for a run on real models."""
        return ", ".join(banner.kind.upper() for banner in self.banners if banner.kind != "real")


def render(template: str, *, title: str, here: str, site: Site, **context: Any) -> str:
    """A page from a template that extends ``base.html.j2``: what is put in is escaped.

    Args:
        template: Its name below ``templates/``.
        title: Of the page.
        here: Its key in the navigation.
        site: The run, and where the page lies.
        context: What the template asks for; a name that is not given is an error.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(title=title, here=here, site=site, pages=PAGES, **context)
