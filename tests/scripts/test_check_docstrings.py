import pytest

from scripts.check_docstrings import findings

PORT = '''
class Port:
    def close(self) -> None:
        """Release everything."""
'''


@pytest.mark.parametrize(
    "body",
    ["def close(self): return 1", "def _open(self): return 1", "def open(self): 'Open it.'", "size: int"],
)
def test_documented_private_and_implementing_members_pass(body: str) -> None:
    assert findings({"a.py": PORT, "b.py": f"class Adapter:\n    {body}"}) == []


def test_a_method_that_nothing_documents_is_found() -> None:
    [problem] = findings({"a.py": PORT, "b.py": "class Adapter:\n    async def open(self): return 1"})
    assert problem == "b.py:2: open has no docstring, and implements nothing that has one"


def test_a_property_stands_for_a_field() -> None:
    adapter = "class Adapter:\n    @property\n    def url(self): return 1"
    assert findings({"b.py": adapter})
    assert findings({"a.py": "class Port:\n    url: str", "b.py": adapter}) == []


@pytest.mark.parametrize(
    "source",
    [
        '"""What it does."""',
        'size: int = 0\n"""How many."""',
        'def size():\n    """How many."""',
        "class A:\n    'Who asks.'",
        'def fits():\n    """Whether it fits."""',
    ],
)
def test_a_docstring_that_asks_is_found(source: str) -> None:
    [problem] = findings({"a.py": source})
    assert "begin with a verb or a noun" in problem


def test_a_field_and_the_check_of_a_contract_may_say_whether() -> None:
    clause = 'def check_order():\n    """Where one fails, the others go on."""'
    assert findings({"testing/src/remit_testing/a.py": clause}) == []
    assert findings({"a.py": "def made(self):\n    self.fits = True\n    'Whether it fits.'"}) == []


def test_the_docstring_of_a_struct_stands_in_its_schema_and_may_stay() -> None:
    bases = "class Part(msgspec.Struct, frozen=True):\n    'Whatever.'\n\nclass Whole(Part):\n    'What there is.'"
    assert findings({"a.py": bases}) == []
    [problem] = findings({"a.py": bases + "\n    size: int = 0\n    'How many.'"})
    assert problem == "a.py:7: begin with a verb or a noun, not with 'How'"


def test_a_docstring_stands_once_on_the_class_and_on_the_port() -> None:
    port = PORT.replace("class Port", "class Port(Protocol)")
    [problem] = findings({"a.py": port, "b.py": "class Adapter:\n    def close(self): 'Release everything.'; return 1"})
    assert problem == "b.py:2: close repeats the docstring of its port"
    assert findings({"a.py": port, "b.py": "class Adapter:\n    def close(self): 'Release the file.'; return 1"}) == []
    [problem] = findings({"b.py": "class Adapter:\n    def __init__(self, file): 'Take a file.'; self.file = file"})
    assert problem == "b.py:2: the docstring of the class says what __init__ takes"
