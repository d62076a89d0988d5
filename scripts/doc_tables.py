"""Write the tables of settings of docs/configuration.md from what is declared: `python -m scripts.doc_tables`.

A new setting, or a part with settings, gets its rows; the words around the tables stay as they are. Of a new section
the words are those of its class.
"""

import re
from pathlib import Path
from typing import Final

import remit.wiring.sections  # noqa: F401 - declares the settings of the parts
from remit.settings import SettingDoc, documented
from remit.settings.table import sections

PAGE: Final = Path("docs/configuration.md")
_BEGIN: Final = "## Every setting\n"
_HEAD: Final = "| name | value | default | environment | meaning |\n|---|---|---|---|---|\n"
_SECTION: Final = re.compile(r"^### `\[(\w+)\]`\n(.*?)(?=^### `\[|\Z)", re.MULTILINE | re.DOTALL)
_TABLE: Final = re.compile(re.escape(_HEAD) + r"(?:\|.*\n)*")


def row(setting: SettingDoc) -> str:
    """Return the line of a setting."""
    name = setting.key.partition(".")[2]
    variables = ", ".join(f"`{variable}`" for variable in setting.env)
    return f"| `{name}` | {setting.type} | `{setting.default}` | {variables} | {setting.meaning} |\n"


def with_tables(page: str) -> str:
    """Return the page with the tables of today's settings, a section for each table of remit.toml."""
    before, begin, rest = page.partition(_BEGIN)
    after = rest[rest.index("\n## ") :]
    written = dict(_SECTION.findall(rest.removesuffix(after)))
    tables: dict[str, str] = {}
    for setting in documented():
        name = setting.key.partition(".")[0]
        tables[name] = tables.get(name, "") + row(setting)
    words = {name: written.get(name, f"{sections()[name].__doc__}\n") for name in tables}
    parts = [f"### `[{name}]`\n{_section(words[name], _HEAD + rows)}" for name, rows in tables.items()]
    return before + begin + "\n" + "\n".join(parts) + after


def _section(words: str, table: str) -> str:
    text = words.strip("\n") + "\n"
    return _TABLE.sub(lambda _: table, text) if _TABLE.search(text) else f"{text}\n{table}"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
