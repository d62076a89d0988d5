from xml.etree import ElementTree as ET

from scripts.recording import PICTURE, SESSION, Line, picture, record
from tests.docs.test_blocks import ROOT

QUESTION = "c_" + "0" * 26
SVG = "{http://www.w3.org/2000/svg}"


class TestSession:
    def test_a_command_names_the_question_that_an_earlier_one_printed(self) -> None:
        ran: list[str] = []

        def run(command: str) -> str:
            ran.append(command)
            return f"waits\n  -> remit confirm {QUESTION}\n"

        lines = record(run, lambda: 0.0)
        assert ran[1].startswith(f"remit confirm {QUESTION} --approve")
        assert len(ran) == len(SESSION)
        assert lines[0].text.plain == "$ remit run triage --customer grace"
        assert [line.at for line in lines] == sorted(line.at for line in lines)

    def test_a_long_line_is_wrapped_as_a_terminal_would(self) -> None:
        lines = record(lambda _command: "word " * 40, lambda: 0.0)
        assert max(len(line.text.plain) for line in lines if not line.text.plain.startswith("$")) <= 100


class TestPicture:
    def drawn(self, printed: str) -> ET.Element:
        return ET.fromstring(picture(record(lambda _command: printed, lambda: 0.0)))  # noqa: S314 - our own picture

    def test_colours_of_the_terminal_are_kept(self) -> None:
        drawn = self.drawn("\x1b[32mok\x1b[0m <done> & \x1b[2mrest\x1b[0m")
        spans = {span.text: span.attrib for span in drawn.iter(f"{SVG}tspan")}
        assert spans["ok"] == {"style": "fill:#56d364"}
        assert spans["rest"] == {"class": "d"}
        assert any("<done> & " in "".join(text.itertext()) for text in drawn.iter(f"{SVG}text"))

    def test_an_empty_line_takes_room_and_draws_nothing(self) -> None:
        drawn = ET.fromstring(picture([Line(record(lambda _: "", lambda: 0.0)[1].text, 0.0)]))  # noqa: S314 - our own picture
        assert list(drawn.iter(f"{SVG}text")) == []
        assert drawn.attrib["viewBox"].endswith(" 51")

    def test_pictures_of_the_pages_load_nothing(self) -> None:
        for path in [ROOT / PICTURE, ROOT / "docs/images/call.svg"]:
            text = path.read_text(encoding="utf-8")
            ET.fromstring(text)  # noqa: S314 - our own picture
            assert text.replace("http://www.w3.org/2000/svg", "").count("://") == 0
