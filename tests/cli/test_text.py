from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from remit.cli.output import OutputChannel, cells, clean, cut, one_line, pad
from remit.cli.tables import TableColumn, fields, table


@settings(deadline=None)
@given(st.text())
def test_nothing_that_is_cleaned_can_move_the_cursor_or_hide(text: str) -> None:
    assert all(char.isprintable() or char == "\n" for char in clean(text))
    assert one_line(text).isprintable()


def test_what_does_not_print_is_shown_as_an_escape() -> None:
    assert clean("a\x1b[31mb\u202ec\u200bd\rné") == "a\\x1b[31mb\\u202ec\\u200bd\\rné"


@settings(deadline=None)
@given(st.text(st.characters(blacklist_categories=["C", "Z"])), st.integers(0, 30))
def test_a_cut_text_fits(text: str, width: int) -> None:
    shown = cut(text, width)
    assert cells(shown) <= width
    assert shown == text or shown.endswith("…") or width == 0


def test_wide_and_combining_characters_take_the_room_they_take() -> None:
    assert cells("漢字") == 4
    assert cells("e\u0301") == 1
    assert pad("漢", 4) == "漢  "
    assert cut("漢字漢字", 5) == "漢字…"


# --- tables


class Screen(OutputChannel):
    """A channel of a given width that keeps its lines."""

    def __init__(self, columns: int | None) -> None:
        super().__init__("stdout", "never")
        self.lines: list[str] = []
        self._columns = columns

    @property
    def width(self) -> int | None:
        return self._columns

    def line(self, text: str = "") -> None:
        self.lines.append(text)


ID = "job_01m80d3wxwe00ba4m4adcs3210"
COLUMNS = (TableColumn("JOB"), TableColumn("NAME", whole=False), TableColumn("ABOUT", whole=False))


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=200), st.integers(20, 200))
def test_a_table_fits_and_never_cuts_an_id(name: str, about: str, width: int) -> None:
    screen = Screen(width)
    table(screen, COLUMNS, [(ID, name, about)], below=[about])
    assert screen.lines[1].startswith(ID)
    assert all(cells(line) <= max(width, len(ID) + 20) for line in screen.lines)


def test_a_table_into_a_pipe_cuts_nothing_and_ends_no_line_with_spaces() -> None:
    screen = Screen(None)
    table(screen, COLUMNS, [(ID, "n", "x" * 300), (ID, "name", "")])
    assert screen.lines[1].endswith("x" * 300)
    assert all(line == line.rstrip() for line in screen.lines)


def test_columns_are_aligned_and_a_table_without_rows_is_nothing() -> None:
    screen = Screen(None)
    table(screen, COLUMNS, [])
    assert screen.lines == []
    table(screen, COLUMNS, [("a", "bb", "c"), ("aaa", "b", "c")])
    assert screen.lines == ["JOB  NAME  ABOUT", "a    bb    c", "aaa  b     c"]


def test_fields_leave_out_what_has_no_value() -> None:
    screen = Screen(None)
    fields(screen, [("name", "x"), ("nothing", ""), ("longer name", "y")])
    assert screen.lines == ["  name         x", "  longer name  y"]
