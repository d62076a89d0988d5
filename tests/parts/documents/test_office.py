"""What a person sees in documents of Office, in books, forms and pages, and what is hidden there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remit.files.parse_job import Parsed, ParseJob, Refused
from remit.parts.documents.documents import format_of
from remit.parts.documents.parser import parse
from tests.parts.documents.made import W, archive, docx, form_pdf, paragraph

R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"


def read(name: str, data: bytes, *, pages: int = 100, chars: int = 100_000) -> Parsed:
    found = parse(ParseJob(format=format_of(name, data), data=data, pages=pages, chars=chars))
    assert isinstance(found, Parsed), found
    return found


def refused(name: str, data: bytes) -> Refused:
    found = parse(ParseJob(format=format_of(name, data), data=data, pages=100, chars=1_000))
    assert isinstance(found, Refused)
    return found


def relations(targets: Mapping[str, tuple[str, str]]) -> str:
    rows = (
        f'<Relationship Id="{name}" Type="{RELATIONS}{kind}" Target="{to}"/>' for name, (kind, to) in targets.items()
    )
    return f"<Relationships>{''.join(rows)}</Relationships>"


def cell(text: str, span: int = 1) -> str:
    return f'<w:tc><w:tcPr><w:gridSpan w:val="{span}"/></w:tcPr>{paragraph(text)}</w:tc>'


def item(text: str, level: int, number: str = "1") -> str:
    place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return f"<w:p><w:pPr>{place}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


NUMBERING = f"""<w:numbering {W}><w:abstractNum w:abstractNumId="0">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="%1(%2)"/></w:lvl>
<w:lvl w:ilvl="2"><w:start w:val="4"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%3"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>
</w:numbering>"""


def test_lists_of_word_have_their_numbers() -> None:
    lines = [("Definitions", 0), ("Term", 1), ("Fee", 1), ("Deep", 2), ("Payment", 0), ("Late", 1)]
    body = "".join(item(text, level) for text, level in lines)
    body += item("Point", 0, "2") + item("Anew", 0, "3") + item("None", 0, "0")
    found = read("a.docx", docx(body, {"word/numbering.xml": NUMBERING}))
    assert [line for line in found.text.split("\n") if line] == [
        "1. Definitions", "1(a) Term", "1(b) Fee", "IV Deep", "2. Payment", "2(a) Late", "- Point", "7. Anew", "None",
    ]  # fmt: skip


def test_a_merged_cell_of_word_takes_its_columns() -> None:
    rows = (cell("Env") + cell("Branch") + cell("Owner"), cell("production", 2) + cell("ann"), cell("wide", 9_999))
    table = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    lines = read("a.docx", docx(f"<w:tbl>{table}</w:tbl>")).text.split("\n")
    assert lines[:2] == ["| Env | Branch | Owner |", "| production |  | ann |"]
    assert lines[2].count("|") == 101


def test_the_main_part_of_word_is_the_one_that_its_relations_name() -> None:
    files = {
        "_rels/.rels": relations({"r1": ("officeDocument", "/word/document2.xml")}),
        "word/document2.xml": f"<w:document {W}><w:body>{paragraph('Here', 'S')}</w:body></w:document>",
        "word/_rels/document2.xml.rels": relations({"r1": ("styles", "styles7.xml")}),
        "word/styles7.xml": f'<w:styles {W}><w:style w:styleId="S"><w:name w:val="heading 2"/></w:style></w:styles>',
    }
    assert read("a.docx", archive(files)).text == "## Here"


def test_parts_may_have_any_names_and_either_slash() -> None:
    body = f"<w:document {W}><w:body>{paragraph('Here')}</w:body></w:document>"
    relation = relations({"r1": ("officeDocument", "main.xml")})
    files = {"[Content_Types].xml": "<Types/>", "_rels/.rels": relation, "main.xml": body}
    assert format_of("a.docx", archive(files)) == "docx"
    assert read("a.docx", archive(files)).text == "Here"
    other = {name.replace("/", "\\"): text for name, text in files.items()}
    assert read("a.docx", archive(other)).text == "Here"
    assert format_of("a.zip", archive(files)) == "text"


def slide(*shapes: str, show: str = "1") -> str:
    return (
        f'<p:sld xmlns:p="p" xmlns:a="a" show="{show}"><p:cSld><p:spTree>{"".join(shapes)}</p:spTree></p:cSld></p:sld>'
    )


def shape(text: str, kind: str = "body", hidden: str = "0") -> str:
    about = f'<p:nvSpPr><p:cNvPr id="1" name="x" hidden="{hidden}"/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>'
    return f"<p:sp>{about}<p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def test_slides_are_pages_with_titles_tables_and_notes_in_the_order_in_which_they_are_shown() -> None:
    cells = "".join(
        f"<a:tc><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>" for text in ("a", "", "c")
    )
    table = f"<p:graphicFrame><a:tbl><a:tr>{cells}</a:tr></a:tbl></p:graphicFrame>"
    data = archive({
        "ppt/presentation.xml": f'<p:presentation xmlns:p="p" {R}><p:sldIdLst><p:sldId id="256" r:id="r2"/>'
        '<p:sldId id="257" r:id="r1"/><p:sldId id="258" r:id="r3"/></p:sldIdLst></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations({
            "r1": ("slide", "slides/one.xml"), "r2": ("slide", "slides/two.xml"), "r3": ("slide", "slides/three.xml"),
        }),
        "ppt/slides/one.xml": slide(shape("Second", "title"), shape("unseen", hidden="1"), shape("7", "sldNum"), table),
        "ppt/slides/two.xml": slide(shape("First", "ctrTitle"), shape("words")),
        "ppt/slides/_rels/two.xml.rels": relations({"n": ("notesSlide", "../notesSlides/n.xml")}),
        "ppt/notesSlides/n.xml": slide(shape("say this"), shape("7", "sldNum")),
        "ppt/slides/three.xml": slide(shape("secret"), show="0"),
    })  # fmt: skip
    found = read("talk.pptx", data)
    assert found.text == "# First\n\nwords\n\nNotes: say this\n\n# Second\n\n| a |  | c |\n\n"
    assert (found.page_count, found.pages[:2], found.truncated) == (3, (0, found.text.index("# Second")), False)
    assert read("talk.pptx", data, pages=1).truncated


def sheet(rows: str, columns: str = "") -> str:
    return f"<worksheet>{columns}<sheetData>{rows}</sheetData></worksheet>"


WORKBOOK = {
    "xl/workbook.xml": f'<workbook {R}><sheets><sheet name="Data" sheetId="1" r:id="r1"/>'
    '<sheet name="Secret" sheetId="2" state="hidden" r:id="r2"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": relations({
        "r1": ("worksheet", "worksheets/a.xml"), "r2": ("worksheet", "worksheets/b.xml"),
        "r3": ("sharedStrings", "strings.xml"), "r4": ("styles", "/xl/styles.xml"),
    }),
    "xl/strings.xml": "<sst><si><t>Name</t></si><si><r><t>two </t></r><r><t>runs</t></r>"
    "<rPh><t>spoken</t></rPh></si></sst>",
    "xl/styles.xml": '<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy"/><numFmt numFmtId="165" '
    'formatCode="&quot;days&quot; 0"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="10"/>'
    '<xf numFmtId="165"/><xf numFmtId="20"/></cellXfs></styleSheet>',
    "xl/worksheets/a.xml": sheet(
        '<row r="2"><c r="A2" t="s"><v>0</v></c><c r="C2" t="s"><v>1</v></c><c r="D2" t="s"><v>0</v></c></row>'
        '<row r="3"><c r="A3" s="1"><v>46354</v></c><c r="B3" s="2"><v>0.125</v></c><c r="C3" s="3"><v>7</v></c></row>'
        '<row r="4"><c r="A4" s="4"><v>0.5</v></c><c r="B4" t="b"><v>1</v></c>'
        '<c r="C4" t="inlineStr"><is><t>in</t></is></c></row>'
        '<row r="5" hidden="1"><c r="A5"><v>666</v></c></row>'
        '<row><c><v>1.10000000000000009</v></c><c t="e"><v>#N/A</v></c></row>',
        '<cols><col min="4" max="4" hidden="1"/></cols>',
    ),
    "xl/worksheets/b.xml": sheet('<row r="1"><c r="A1"><v>666</v></c></row>'),
}  # fmt: skip


def test_a_workbook_is_tables_with_the_names_of_their_cells() -> None:
    found = read("a.xlsx", archive(WORKBOOK))
    assert found.text.split("\n") == [
        "## Data", "", "| | A | B | C |", "|---|---|---|---|", "| 2 | Name |  | two runs |",
        "| 3 | 2026-11-28 | 12.5% | 7 |", "| 4 | 12:00:00 | TRUE | in |", "| 6 | 1.1 | #N/A |  |",
    ]  # fmt: skip
    assert (found.page_count, found.pages) == (1, (0,))


def test_a_sparse_workbook_costs_no_more_than_its_limit() -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    names = [first + second + third for first in letters[:3] for second in letters for third in letters]
    rows = "".join(f'<row r="{at}"><c r="{name}{at}"><v>1</v></c></row>' for at, name in enumerate(names, 1))
    found = read("a.xlsx", archive({**WORKBOOK, "xl/worksheets/a.xml": sheet(rows)}), chars=10_000)
    assert found.truncated
    assert len(found.text) == 10_000


BOOK = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
    "OPS/book.opf": '<package><metadata><title>A Book</title></metadata><manifest><item id="a" href="a%20b.xhtml" '
    'media-type="application/xhtml+xml"/><item id="b" href="../b.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="c" '
    'href="c.css" media-type="text/css"/></manifest><spine><itemref idref="b"/><itemref idref="a"/></spine></package>',
    "OPS/a b.xhtml": "<html><body><h1>Two</h1><p>second</p></body></html>",
    "b.xhtml": "<html><body><h1>One</h1><p hidden=''>unseen</p></body></html>",
}


def test_chapters_of_a_book_are_pages_in_the_order_in_which_they_are_read() -> None:
    found = read("a.epub", archive(BOOK))
    assert (found.text, found.title, found.page_count) == ("One\n\nTwo\n\nsecond", "A Book", 2)
    assert found.pages == (0, found.text.index("Two"))


def test_a_book_of_which_a_chapter_is_encrypted_is_refused_and_one_with_such_fonts_is_read() -> None:
    for uri, encrypted in (("OPS/a%20b.xhtml", True), ("OPS/font.otf", False)):
        locked = archive(
            {**BOOK, "META-INF/encryption.xml": f'<encryption><CipherReference URI="{uri}"/></encryption>'}
        )
        if encrypted:
            assert refused("a.epub", locked).code == "DOCUMENT_ENCRYPTED"
        else:
            assert read("a.epub", locked).page_count == 2


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"nbformat":4,"cells":[{"cell_type":"markdown","source":"KEEP"}],"metadata":{"x":NaN}}', "KEEP"),
        (b'{"cells":[{"source":7},{"source":["a","b"],"outputs":[3]},null]}', "ab"),
        (b'{"cells":[{"source":"\\ud83d"}]}', "?"),
    ],
)
def test_an_odd_value_of_a_notebook_costs_its_own_place(data: bytes, text: str) -> None:
    assert read("a.ipynb", data).text.strip() == text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"cells":[}', "line 1, column 11"),
        (b'{"nbformat":3,"worksheets":[]}', "format 3"),
        (b"\xff{}", "UTF-8"),
    ],
)
def test_a_notebook_that_cannot_be_read_says_why(data: bytes, words: str) -> None:
    assert words in refused("a.ipynb", data).reason


@pytest.mark.parametrize("appearance", [True, False])
def test_a_filled_form_is_read_with_its_values(appearance: bool) -> None:
    text = read("form.pdf", form_pdf("Name:", "FILLEDNAME", appearance=appearance)).text
    assert text.split() == ["Name:", "FILLEDNAME"]
