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

The value of a condition: true, false, or unknown. A tree of `expression` becomes a function of a call.

Unknown is what is missing, has another type than an operator takes, or differs only as two texts may that a reader
takes for the same. `and`, `or` and `not` continue it as Kleene's logic does: `false and unknown` is false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from remit.policy.decision import UNKNOWN, Query
from remit.policy.readings import fold
from remit.regex import regex

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
_TOKEN: Final = regex(
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
        return tuple(part for operand in node.operands for part in parts_of(operand))
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
            match = _TOKEN.match(self._text, self._at)
            return "not in" if match and match["word"] == "in" else ""
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
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            rest = self._text[self._at :].strip()
            if rest:
                raise self._error(f"has {rest[:20]!r}, which means nothing")
            self._kind, self._lexeme = "", ""
            return
        self._at = match.end()
        self._kind = match.lastgroup or ""
        self._lexeme = match[self._kind]

    def _error(self, what: str) -> ExpressionError:
        return ExpressionError(f"{what} (near character {min(self._after, len(self._text)) + 1})")


def _number(digits: str) -> int | float:
    """A number; one that is longer than JSON readers agree about is a float."""
    return int(digits) if digits.isdigit() and len(digits) <= _DIGITS else float(digits)


Evaluate = Callable[[Query], Any]
"""From a call to a value, which may be UNKNOWN; never raises."""

_LARGEST: Final = 10**300
_MOST: Final = 10_000
"""Items of a list that a condition looks at; for a longer list the result is unknown."""
_LONGEST: Final = 2_000
"""Characters of texts that are compared without their differences in case and the like."""
_EDGE: Final = 64
"""Characters at the end of a piece that those behind it may change, such as an accent."""
_folded: Final = lru_cache(1_024)(fold)
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
}  # fmt: skip
_SUMS: Final[dict[str, Callable[[Any, Any], Any]]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def compiled(node: Node) -> Evaluate:
    """The function of a tree."""
    if isinstance(node, Literal):
        value = node.value
        return lambda _: value
    if isinstance(node, Path):
        return _path(node)
    if isinstance(node, Items):
        items = [compiled(item) for item in node.items]
        return lambda query: [item(query) for item in items]
    return _apply(node)


def verdict(evaluate: Evaluate, query: Query) -> bool | None:
    """Return whether a condition holds; None: unknown."""
    truth = evaluate(query)
    return truth if truth is True or truth is False else None


def _path(path: Path) -> Evaluate:
    if path.tool:
        return _result(path.tool, path.parts)
    parts = path.parts
    if path.root == "args" and len(parts) == 1 and isinstance(parts[0], str):
        name = parts[0]
        return lambda query: query.args.get(name, UNKNOWN)
    start = _ROOTS[path.root]
    return (lambda query: _below(start(query), parts)) if parts else start


def _result(tool: str, parts: tuple[str | int, ...]) -> Evaluate:
    name = parts[0] if len(parts) == 1 else None

    def seen(query: Query) -> Any:
        facts = query.facts
        if facts is None:
            return UNKNOWN
        value = facts.seen.get(tool, UNKNOWN)
        if name is not None and type(value) is dict:
            return value.get(name, UNKNOWN)
        return _below(value, parts)

    return seen


def _below(value: Any, parts: tuple[str | int, ...]) -> Any:
    for index, part in enumerate(parts):
        if isinstance(value, dict):
            value = value.get(part, UNKNOWN) if isinstance(part, str) else UNKNOWN
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part] if part < len(value) else UNKNOWN
        elif isinstance(value, list) and len(value) <= _MOST:
            return [_below(entry, parts[index:]) for entry in value]
        else:
            return UNKNOWN
    return value


_ROOTS: Final[Mapping[str, Evaluate]] = {
    "args": lambda query: query.args,
    "input": lambda query: UNKNOWN if query.facts is None else query.facts.input,
    "kind": lambda query: query.caller.kind,
    "principal": lambda query: query.caller.principal,
    "recipe": lambda query: query.caller.recipe,
    "tool": lambda query: UNKNOWN if query.tool is None else query.tool.name,
}


def _apply(node: Apply) -> Evaluate:
    name = node.name
    if name in {"and", "or"}:
        return _joined([compiled(operand) for operand in _chain(node)], decisive=name == "or")
    operands = [compiled(operand) for operand in node.operands]
    if name == "age":
        return lambda query: _age(operands[0](query), query.now)
    if len(operands) == 1:
        [only], act = operands, _ONE[name]
        return lambda query: act(only(query))
    left, right = operands
    if name in _ORDER:
        return _compared(left, right, _ORDER[name])
    both = _TWO[name]
    return lambda query: both(left(query), right(query))


def _chain(node: Node, name: str = "") -> list[Node]:
    """The operands of one `and` or `or` after the other."""
    if not isinstance(node, Apply) or node.name != (name or node.name):
        return [node]
    return [part for operand in node.operands for part in _chain(operand, node.name)]


def _joined(operands: list[Evaluate], *, decisive: bool) -> Evaluate:
    every, other = tuple(operands), not decisive

    def evaluate(query: Query) -> Any:
        result: Any = other
        for judge in every:
            value = judge(query)
            if value is decisive:
                return decisive
            if value is not other:
                result = UNKNOWN
        return result

    return evaluate


def _compared(left: Evaluate, right: Evaluate, order: Callable[[Any, Any], bool]) -> Evaluate:
    def compare(query: Query) -> Any:
        ours, other = left(query), right(query)
        if type(ours) is int and type(other) is int:
            return order(ours, other)
        alike = (_is_number(ours) and _is_number(other)) or (isinstance(ours, str) and isinstance(other, str))
        return order(ours, other) if alike else UNKNOWN

    return compare


def _not(value: Any) -> Any:
    return (not value) if value is True or value is False else UNKNOWN


def same(left: Any, other: Any) -> Any:
    """Say whether two values are equal, or UNKNOWN. True is not 1; texts that differ only to a machine are UNKNOWN."""
    if isinstance(left, str) and isinstance(other, str):
        return True if left == other else _alike(left, other)
    if left is UNKNOWN or other is UNKNOWN:
        return UNKNOWN
    if left is None or other is None:
        return left is other
    if isinstance(left, bool) or isinstance(other, bool):
        return left is other if isinstance(left, bool) and isinstance(other, bool) else UNKNOWN
    if _is_number(left) and _is_number(other):
        return left == other
    return _same_shape(left, other)


def _alike(word: str, other: str) -> Any:
    """UNKNOWN for two texts that could be the same to a reader, or that are too long to compare; else False."""
    left, right = _folded(word[:_LONGEST]), _folded(other[:_LONGEST])
    left_cut, right_cut = len(word) > _LONGEST, len(other) > _LONGEST
    if not left_cut and not right_cut:
        return UNKNOWN if left == right else False
    # What comes behind a piece may change its end, and nothing before that.
    left_sure, right_sure = (text[:-_EDGE] if cut else text for text, cut in ((left, left_cut), (right, right_cut)))
    common = min(len(left_sure), len(right_sure))
    shorter = (not left_cut and len(left) < len(right_sure)) or (not right_cut and len(right) < len(left_sure))
    return False if shorter or left_sure[:common] != right_sure[:common] else UNKNOWN


def _same_shape(left: Any, other: Any) -> Any:
    if isinstance(left, list) and isinstance(other, list):
        if len(left) != len(other):
            return False
        return _every(map(same, left, other))
    if isinstance(left, dict) and isinstance(other, dict):
        return left.keys() == other.keys() and _every([same(value, other[name]) for name, value in left.items()])
    return UNKNOWN


def _every(verdicts: Any) -> Any:
    result: Any = True
    for outcome in verdicts:
        if outcome is False:
            return False
        if outcome is UNKNOWN:
            result = UNKNOWN
    return result


def _differ(value: Any, other: Any) -> Any:
    return _not(same(value, other))


def _in(value: Any, many: Any) -> Any:
    if not isinstance(many, list) or len(many) > _MOST:
        return UNKNOWN
    return _not(_every(_differ(value, each) for each in many))


def _not_in(value: Any, many: Any) -> Any:
    return _not(_in(value, many))


def _all_in(some: Any, many: Any) -> Any:
    if not isinstance(some, list) or not isinstance(many, list) or len(some) * len(many) > _MOST:
        return UNKNOWN
    return _every([_in(entry, many) for entry in some]) if some else UNKNOWN


def _adds(name: str) -> Callable[[Any, Any], Any]:
    act = _SUMS[name]

    def add(value: Any, other: Any) -> Any:
        if not (_is_number(value) and _is_number(other)):
            return UNKNOWN
        return _bounded(act(value, other))

    return add


def _has(value: Any) -> bool:
    return value is not UNKNOWN


def _len(value: Any) -> Any:
    return len(value) if isinstance(value, str | list) else UNKNOWN


def _lower(value: Any) -> Any:
    return _folded(value) if isinstance(value, str) and len(value) <= _LONGEST else UNKNOWN


def _sum(value: Any) -> Any:
    if not isinstance(value, list) or len(value) > _MOST or not all(map(_is_number, value)):
        return UNKNOWN
    return _bounded(sum(value))


def _age(value: Any, now: int) -> Any:
    if not isinstance(value, str) or now <= 0:
        return UNKNOWN
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return UNKNOWN
    return UNKNOWN if at.tzinfo is None else now / 1_000_000 - at.timestamp()


def _bounded(value: Any) -> Any:
    return value if -_LARGEST < value < _LARGEST else UNKNOWN


def _is_number(value: Any) -> bool:
    kind = type(value)
    return (kind is int or kind is float) and -_LARGEST < value < _LARGEST


_ONE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "has": _has, "len": _len, "lower": _lower, "not": _not, "sum": _sum
}  # fmt: skip
_TWO: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "==": same, "!=": _differ, "in": _in, "not in": _not_in, "all_in": _all_in,
    **{name: _adds(name) for name in _SUMS},
}  # fmt: skip
