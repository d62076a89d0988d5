"""Documents, made byte by byte."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def pdf(pages: Sequence[str], *, title: str = "", trailer: str = "") -> bytes:
    """A PDF with a text on each page; `trailer` is put into its trailer."""
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Title ({title}) >>",
    ]
    for number, text in enumerate(pages):
        lines = " ".join(f"({line}) Tj T*" for line in text.split("\n"))
        content = f"BT /F1 12 Tf 72 720 Td 14 TL {lines} ET"
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] {resources} /Contents {6 + 2 * number} 0 R >>"
        objects += [page, f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"]
    return _pdf(objects, f"/Info 4 0 R {trailer}")


def _pdf(objects: Sequence[str], trailer: str = "") -> bytes:
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    start = len(out)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{table}".encode()
    out += f"trailer << /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(out)


def encrypted_pdf() -> bytes:
    """A PDF that wants a password."""
    key = "61" * 32
    lock = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >> /ID [<{key}> <{key}>]"
    return pdf(["secret"], trailer=lock)


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """A ZIP of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return out.getvalue()


def docx(body: str, more: Mapping[str, str | bytes] | None = None) -> bytes:
    """A Word document with this body in WordprocessingML."""
    return archive(
        {"word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>", **(more or {})},
    )


def paragraph(text: str, style: str = "") -> str:
    """A paragraph, perhaps of a style."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def notebook(cells: Sequence[Mapping[str, object]]) -> bytes:
    """A Jupyter notebook of format 4."""
    return json.dumps(
        {"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    ).encode()


def form_pdf(label: str, value: str, *, appearance: bool) -> bytes:
    """A PDF with a text field; with an `appearance`, its program has drawn the value, else the viewer has to."""
    drawn = f"BT /F1 12 Tf 2 4 Td ({value}) Tj ET"
    page = f"BT /F1 12 Tf 72 700 Td ({label}) Tj ET"
    fonts = "<< /Font << /F1 3 0 R >> >>"
    looks = "/AP << /N 7 0 R >>" if appearance else ""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [6 0 R] /DA (/F1 12 Tf 0 g) /DR {fonts} >> >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {fonts} /Contents 5 0 R /Annots [6 0 R] >>",
        f"<< /Length {len(page)} >>\nstream\n{page}\nendstream",
        f"<< /Type /Annot /Subtype /Widget /FT /Tx /T (n) /V ({value}) /Rect [120 695 300 712] /F 4 {looks} >>",
        f"<< /Subtype /Form /BBox [0 0 180 17] /Resources {fonts} /Length {len(drawn)} >>\nstream\n{drawn}\nendstream",
    ]
    return _pdf(objects)
