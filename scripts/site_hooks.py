"""Hooks of the documentation site (mkdocs.yml).

The pages are written to be read in a checkout. There they link to sources and examples. The site does not hold those:
such a link becomes its text. A block that is a file has its name after the language; the site shows it as a title.

Programs read the site too: the Markdown of a page stands beside it, and `llms.txt` (https://llmstxt.org) lists them.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

BOOSTS: Final = {"First day": 4.0, "How-to guides": 2.0}
"""How much more a hit in a page of these sections counts in the search: who searches wants to get something done."""
_OUTSIDE: Final = re.compile(r"(?<!!)\[([^\]]*)\]\(\.\./[^)\s]*\)")
_NAMED: Final = re.compile(r"^```(\w+) ([\w./ -]+)$", re.MULTILINE)
_CODE: Final = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
_RAW: Final = re.compile(r"```|^\s*(?:<p>)?\|.*\|", re.MULTILINE)
"""Fences and rows of tables that are still text."""
_PROSE: Final = re.compile(r"^(?![#|`>\-\s]|```).+(?:\n(?![#|>\-\s]|```).+)*", re.MULTILINE)
"""A paragraph."""
_ITEM: Final = re.compile(r"(?:[-*]|\d+\.) ")
_LEVEL: Final = 4
_SUMMARY: Final = 200
"""Characters."""
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_log: Final = logging.getLogger("mkdocs.hooks")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page as the site shows it, its summary and its weight in the search."""
    shown = _NAMED.sub(r'```\1 title="\2"', nested(_OUTSIDE.sub(r"\1", markdown)))
    page.meta["description"] = summary(shown)
    boost = BOOSTS.get(page.parent.title) if page.parent else None
    if boost is not None:
        page.meta["search"] = {"boost": boost}
    return shown


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Warn of Markdown that the site would show as text; with `--strict` a warning is an error."""
    for match in _RAW.finditer(_CODE.sub("", html)):
        _log.warning("%s shows Markdown as text: %s", page.file.src_uri, match[0][:60].strip())
    return html


def on_page_context(context: Any, page: Any, config: Any, nav: Any, **_: Any) -> Any:
    """Write the Markdown of a page beside it, and with the first page the list of all."""
    site = Path(config.site_dir)
    (site / page.file.src_uri).write_text(page.markdown, encoding="utf-8")
    if page.is_homepage:
        lines = [f"# {config.site_name}\n", f"> {config.site_description}\n", *_listed(nav.items)]
        (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    return context


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Name the Markdown of a page in its head."""
    return output.replace(
        "</head>", f'<link rel="alternate" type="text/markdown" href="{page.file.src_uri}"></head>', 1
    )


def nested(markdown: str) -> str:
    """A page whose lists are as Python-Markdown wants them.

    A blank line comes before a list, and before an item after one that holds blocks; what stands in an item is
    indented by four blanks for each level.
    """
    lines: list[str] = [""]
    shift, in_list, has_blocks, in_fence = 0, False, False, False
    for line in markdown.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        if not in_fence:
            is_item = bool(_ITEM.match(line))
            if is_item and lines[-1] and (has_blocks or not in_list):
                lines.append("")
            in_list = is_item or (in_list and (indent > 1 or not line))
            has_blocks = in_list and not is_item and (has_blocks or not line or line.lstrip().startswith("```"))
            shift = -indent % _LEVEL if in_list else 0
        if line.lstrip().startswith("```"):
            in_fence = not in_fence
        lines.append(" " * shift + line if line else "")
    return "\n".join(lines[1:])


def _listed(items: Any) -> Iterator[str]:
    for item in items:
        if item.is_section:
            yield f"## {item.title}\n"
            yield from _listed(item.children)
            yield ""
        elif not item.is_homepage:
            about = item.meta["description"]
            yield f"- [{item.title}]({item.file.src_uri}){f': {about}' if about else ''}"


def summary(markdown: str) -> str:
    """The first sentences of a page, of a line at most, without markup; empty if it has none."""
    paragraph = _PROSE.search(re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL))
    words = re.sub(r"[*`]", "", " ".join(_LINK.sub(r"\1", paragraph[0]).split())) if paragraph else ""
    first, *others = re.split(r"(?<=[.:;]) ", words)
    for sentence in others:
        if len(first) + len(sentence) > _SUMMARY:
            break
        first += f" {sentence}"
    return first.rstrip(":;")


def slug(text: str, separator: str) -> str:
    """The anchor of a heading, as hosts of repositories make it: lower case, no punctuation, hyphens for blanks."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", separator)
