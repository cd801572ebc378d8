"""The words of the text form, each with its place."""

import json
import re
from dataclasses import dataclass
from typing import NoReturn

from vitral.errors import CompileError

__all__ = ["Cursor", "Token", "fail_at", "unquoted"]

_PATTERN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+|\#[^\n]*)
    | (?P<value>%(?:[0-9]+(?![\w./:-])|[A-Za-z_][\w]*(?:[./:-]\w+)*|"(?:[^"\\\n]|\\.)*"))
    | (?P<number>-?(?:inf|nan)\b|-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
        (?P<suffix>[fiu][0-9]*)?(?!\w))
    | (?P<word>[A-Za-z_]\w*(?:\.\w+)*)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<mark>->|[()\[\]{},=:])
    """,
    re.VERBOSE | re.ASCII,
)


@dataclass(frozen=True)
class Token:
    """A word; kind is value, number, word, string, mark or end."""

    kind: str
    text: str
    line: int
    column: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def fail_at(source: str, token: Token, text: str) -> NoReturn:
    """CompileError at a word's place."""
    raise CompileError(f"{source}:{token.line}:{token.column}: {text}")


class Cursor:
    """Walks the words of a text, with one word of foresight."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._tokens = _split(text, source)
        self._at = 0

    @property
    def next(self) -> Token:
        """The word that comes."""
        return self._tokens[self._at]

    @property
    def second(self) -> Token:
        """The word behind it."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def accept(self, text: str) -> bool:
        """Whether this mark or word comes; it is taken then."""
        if self.next.text != text or self.next.kind not in ("mark", "word"):
            return False
        self.take()
        return True

    def expect(self, text: str) -> Token:
        if self.next.text != text or self.next.kind not in ("mark", "word"):
            self.fail(f"needs {text!r}, got {self.next}")
        return self.take()

    def expect_kind(self, kind: str, what: str) -> Token:
        if self.next.kind != kind:
            self.fail(f"needs {what}, got {self.next}")
        return self.take()

    def fail(self, text: str, token: Token | None = None) -> NoReturn:
        """CompileError at a word's place, or where the cursor is."""
        fail_at(self.source, token or self.next, text)


def _split(text: str, source: str) -> list[Token]:
    tokens: list[Token] = []
    at, line, start = 0, 1, 0
    while at < len(text):
        match = _PATTERN.match(text, at)
        if match is None:
            wrong = Token("mark", text[at], line, at - start + 1)
            fail_at(source, wrong, f"needs a word of the text form, got {text[at : at + 20]!r}")
        kind = match.lastgroup if match.lastgroup != "suffix" else "number"
        if kind != "space":
            tokens.append(Token(str(kind), match.group(), line, at - start + 1))
        lines = match.group().count("\n")
        if lines:
            line, start = line + lines, at + match.group().rindex("\n") + 1
        at = match.end()
    tokens.append(Token("end", "", line, at - start + 1))
    return tokens


def unquoted(token: Token, source: str) -> str:
    """What a quoted string says."""
    try:
        return json.loads(token.text)
    except json.JSONDecodeError:
        fail_at(source, token, f"needs a string in JSON's form, got {token}")
