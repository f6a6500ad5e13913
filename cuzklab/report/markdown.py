"""Markdown of a notebook as HTML, its headings gathered for a list of contents; raw HTML in it is shown as text."""

import re
from dataclasses import dataclass, field

import mistune


@dataclass(frozen=True)
class Heading:
    """A heading of the page: its level, its place in the page, its text as HTML."""

    level: int
    anchor: str
    text: str


@dataclass
class Contents:
    """Headings in order; the first of level 1 is the title of the page and stands in its head, not in the text."""

    entries: list[Heading] = field(default_factory=list)
    title: str = ""

    def anchor_for(self, text: str) -> str:
        """A place name that no other heading has."""
        base = re.sub(r"[^a-z0-9]+", "-", re.sub(r"<[^>]*>|&[a-z#0-9]+;", "", text).lower()).strip("-") or "section"
        taken = {entry.anchor for entry in self.entries}
        anchor, count = base, 1
        while anchor in taken:
            count += 1
            anchor = f"{base}-{count}"
        return anchor


class _Renderer(mistune.HTMLRenderer):
    def __init__(self, contents: Contents) -> None:
        super().__init__(escape=True)
        self.contents = contents

    def heading(self, text: str, level: int, **attributes: object) -> str:
        if level == 1 and not self.contents.title:
            self.contents.title = _plain_text(text)
            return ""
        anchor = self.contents.anchor_for(text)
        self.contents.entries.append(Heading(level, anchor, _plain_text(text)))
        return f'<h{level} id="{anchor}">{text}</h{level}>\n'


def render_markdown(source: str, contents: Contents | None = None) -> str:
    """HTML of Markdown text; its headings are added to `contents`."""
    renderer = _Renderer(contents if contents is not None else Contents())
    return mistune.create_markdown(renderer=renderer, plugins=["table", "strikethrough"])(source)


def _plain_text(rendered: str) -> str:
    """Text of a heading without its tags and entities; the template escapes it again."""
    import html

    return html.unescape(re.sub(r"<[^>]*>", "", rendered))
