"""The language of `where`, from text to a tree: conditions over a call, its caller, its job's input, earlier results.

It is closed on purpose: no loops, no variables, no functions but those below, bounded in size and depth, so that a
decision takes microseconds and lint can say what a condition looks at.

    args.amount <= seen("orders.get").total and seen("orders.get").status in ["pending", "paid"]

| what | gives |
|---|---|
| `args`, `input`, `principal`, `recipe`, `kind`, `tool` | the call's arguments, its job's input, the caller, the tool |
| `seen("orders.get")` | what this tool last returned to the same job |
| `.name`, `["a name"]`, `[0]` | what lies below; through a list, that of each item |
| `and`, `or`, `not`, `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `+`, `-`, `*` | as usual |
| `has(x)` | whether there is such a value |
| `len(x)`, `sum(x)`, `lower(x)` | of a list or text, of a list of numbers, of a text |
| `all_in(x, y)` | whether each item of the list x is one of y |
| `age(x)` | seconds since a time such as `2026-05-01T12:00:00Z` |
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

MAX_CHARS: Final = 2_000
MAX_NODES: Final = 200
MAX_DEPTH: Final = 24
_DIGITS: Final = 15

ROOTS: Final = ("args", "input", "kind", "principal", "recipe", "tool")
"""The names that a condition can look at, beside earlier results."""
SEEN: Final = "seen"
FUNCTIONS: Final = {"age": 1, "all_in": 2, "has": 1, "len": 1, "lower": 1, "sum": 1}
"""The number of operands that each takes."""
COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=", "in", "not in")
_BINDING: Final = {"or": 1, "and": 2, **dict.fromkeys(COMPARISONS, 4), "+": 5, "-": 5, "*": 6}
_NOT: Final = 3
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)|(?P<text>"(?:[^"\\]|\\.)*"|'[^']*')"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>==|!=|<=|>=|[<>+*()\[\],.-]))"""
)


class ExpressionError(ValueError):
    """A condition that cannot be understood; its text says where."""


class Literal(msgspec.Struct, frozen=True):
    """A constant."""

    value: Any

    def __str__(self) -> str:
        return msgspec.json.encode(self.value).decode()


class Path(msgspec.Struct, frozen=True):
    """A value that is looked at: below a root, or below an earlier result."""

    root: str
    """One of ROOTS; empty below an earlier result."""
    tool: str
    """Whose result; empty below a root."""
    parts: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        start = self.root or f"{SEEN}({msgspec.json.encode(self.tool).decode()})"
        return start + "".join(_part(part) for part in self.parts)


class Items(msgspec.Struct, frozen=True):
    """A list, as it is written."""

    items: tuple[Node, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.items))}]"


class Apply(msgspec.Struct, frozen=True):
    """An operator or function with its operands."""

    name: str
    operands: tuple[Node, ...]

    def __str__(self) -> str:
        if self.name in FUNCTIONS:
            return f"{self.name}({', '.join(map(str, self.operands))})"
        if self.name == "not":
            return f"not {self._below(self.operands[0])}"
        return f" {self.name} ".join(map(self._below, self.operands))

    def _below(self, node: Node) -> str:
        bare = (
            not isinstance(node, Apply) or node.name in FUNCTIONS or (node.name in COMPARISONS and self.name in _LOGIC)
        )
        return str(node) if bare else f"({node})"


_LOGIC: Final = ("and", "or", "not")
Node = Literal | Path | Items | Apply


def parse(text: str) -> Node:
    """The tree of a condition. Raises ExpressionError."""
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"is longer than {MAX_CHARS} characters")
    parser = _Parser(text)
    node = parser.expression(0, 0)
    parser.end()
    return node


def paths_of(node: Node) -> Iterator[Path]:
    """Every value that a condition looks at."""
    if isinstance(node, Path):
        yield node
    for below in below_of(node):
        yield from paths_of(below)


def below_of(node: Node) -> tuple[Node, ...]:
    """The parts of a node."""
    if isinstance(node, Apply):
        return node.operands
    return node.items if isinstance(node, Items) else ()


def parts_of(node: Node) -> tuple[Node, ...]:
    """The conditions that all have to hold: those between the outermost `and`."""
    if isinstance(node, Apply) and node.name == "and":
        return tuple(part for one in node.operands for part in parts_of(one))
    return (node,)


def _part(part: str | int) -> str:
    if isinstance(part, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part):
        return f".{part}"
    return f"[{msgspec.json.encode(part).decode()}]"


class _Parser:
    """By precedence: each operator takes what binds closer than itself."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nodes = 0
        self._kind, self._lexeme, self._after = "", "", 0
        self._next()

    def expression(self, binding: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error(f"is nested deeper than {MAX_DEPTH} levels")
        node = self._first(depth)
        while True:
            name = self._operator()
            own = _BINDING.get(name, 0)
            if own <= binding:
                return node
            self._take(name)
            right = self.expression(own, depth + 1)
            if name in COMPARISONS and self._operator() in COMPARISONS:
                raise self._error("compares three values at once; join two comparisons with `and`")
            node = self._made(Apply(name, (node, right)))

    def end(self) -> None:
        if self._kind:
            raise self._error(f"does not end before {self._lexeme!r}")

    def _operator(self) -> str:
        if self._kind == "word" and self._lexeme == "not":
            found = _TOKEN.match(self._text, self._at)
            return "not in" if found and found["word"] == "in" else ""
        return self._lexeme if self._kind in {"word", "sign"} else ""

    def _take(self, name: str) -> None:
        self._next()
        if name == "not in":
            self._next()

    def _first(self, depth: int) -> Node:
        kind, lexeme = self._kind, self._lexeme
        if not kind:
            raise self._error("ends too early")
        self._next()
        if kind == "word" and lexeme != "not":
            return self._word(lexeme, depth)
        if kind == "sign":
            return self._signed(lexeme, depth)
        if kind == "word":
            return self._made(Apply("not", (self.expression(_NOT, depth + 1),)))
        return self._made(Literal(_number(lexeme) if kind == "number" else self._string(lexeme)))

    def _signed(self, sign: str, depth: int) -> Node:
        """Return what begins with a sign: a negative number, a list, or what stands in parentheses."""
        if sign == "-" and self._kind == "number":
            number = _number(self._lexeme)
            self._next()
            return self._made(Literal(-number))
        if sign == "(":
            node = self.expression(0, depth + 1)
            self._expect(")")
            return node
        if sign == "[":
            return self._made(Items(self._list("]", depth)))
        raise self._error(f"has {sign!r} where a value is meant to be")

    def _word(self, word: str, depth: int) -> Node:
        if word in _CONSTANTS:
            return self._made(Literal(_CONSTANTS[word]))
        if word == SEEN:
            return self._made(self._seen(depth))
        if self._lexeme == "(":
            return self._made(self._function(word, depth))
        if word not in ROOTS:
            raise self._error(f'does not know {word!r}; there are {", ".join(ROOTS)}, {SEEN}("a.tool")')
        return self._made(Path(word, "", self._below()))

    def _seen(self, depth: int) -> Path:
        self._expect("(")
        tool = self._list(")", depth)
        if (
            len(tool) != 1
            or not isinstance(tool[0], Literal)
            or not isinstance(tool[0].value, str)
            or not tool[0].value
        ):
            raise self._error(f'needs the full name of a tool: {SEEN}("orders.get")')
        return Path("", tool[0].value, self._below())

    def _function(self, name: str, depth: int) -> Apply:
        if name not in FUNCTIONS:
            raise self._error(f"does not know the function {name!r}; there are {', '.join(FUNCTIONS)}, {SEEN}")
        self._next()
        operands = self._list(")", depth)
        if len(operands) != FUNCTIONS[name]:
            raise self._error(f"gives {name}() {len(operands)} operands; it takes {FUNCTIONS[name]}")
        if name == "has" and not isinstance(operands[0], Path):
            raise self._error("asks has() of something that is always there")
        return Apply(name, operands)

    def _below(self) -> tuple[str | int, ...]:
        parts: list[str | int] = []
        while self._kind == "sign" and self._lexeme in {".", "["}:
            dotted = self._lexeme == "."
            self._next()
            if dotted:
                if self._kind != "word":
                    raise self._error("has a dot without a name behind it")
                parts.append(self._lexeme)
            elif self._kind == "text":
                parts.append(self._string(self._lexeme))
            elif self._kind == "number" and self._lexeme.isdigit():
                parts.append(int(self._lexeme))
            else:
                raise self._error("has brackets without a name or number in them")
            self._next()
            if not dotted:
                self._expect("]")
            if len(parts) > MAX_DEPTH:
                raise self._error(f"goes deeper than {MAX_DEPTH} names")
        return tuple(parts)

    def _list(self, closing: str, depth: int) -> tuple[Node, ...]:
        items: list[Node] = []
        while not (self._kind == "sign" and self._lexeme == closing):
            if items:
                self._expect(",")
            items.append(self.expression(0, depth + 1))
        self._next()
        return tuple(items)

    def _expect(self, sign: str) -> None:
        if self._kind != "sign" or self._lexeme != sign:
            raise self._error(f"has {self._lexeme!r} where {sign!r} is missing" if self._kind else f"misses {sign!r}")
        self._next()

    def _made(self, node: Node) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise self._error(f"has more than {MAX_NODES} parts")
        return node

    def _string(self, quoted: str) -> str:
        if quoted.startswith("'"):
            return quoted[1:-1]
        try:
            return str(msgspec.json.decode(quoted.encode(), type=str))
        except (msgspec.DecodeError, UnicodeEncodeError):
            raise self._error(f"has the text {quoted}, which is not written as in JSON") from None

    def _next(self) -> None:
        self._after = self._at
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            rest = self._text[self._at :].strip()
            if rest:
                raise self._error(f"has {rest[:20]!r}, which means nothing")
            self._kind, self._lexeme = "", ""
            return
        self._at = found.end()
        self._kind = found.lastgroup or ""
        self._lexeme = found[self._kind]

    def _error(self, what: str) -> ExpressionError:
        return ExpressionError(f"{what} (near character {min(self._after, len(self._text)) + 1})")


def _number(digits: str) -> int | float:
    """A number; one that is longer than JSON readers agree about is a float."""
    return int(digits) if digits.isdigit() and len(digits) <= _DIGITS else float(digits)
