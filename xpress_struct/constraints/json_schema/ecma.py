"""Parser of the regular expressions of JSON Schema (ECMA-262, with what Python's `re` adds).

Where ECMA-262 and Python's `re` differ on a class (`\\d \\w \\s .`), `Class` keeps both what each of them
takes (`both`) and what at least one takes (`either`): a text built from `both` satisfies the pattern in
every validator, and a text that avoids `either` violates it in every validator.
"""

from __future__ import annotations

from typing import NoReturn

from . import charset as cs
from .ecma_nodes import (
    Alt,
    Cat,
    Class,
    End,
    Look,
    Node,
    PatternError,
    Rep,
    Start,
    negated,
    single,
    unicode_property,
)

__all__ = ["parse"]

_ESCAPED = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B, "0": 0x00, "a": 0x07}
_MAX_DEPTH = 100


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0

    def fail(self, why: str) -> NoReturn:
        raise PatternError(f"{why} at character {self.at} of the pattern {self.text!r}")

    def peek(self, ahead: str) -> bool:
        return self.text.startswith(ahead, self.at)

    def take(self, ahead: str) -> bool:
        if self.peek(ahead):
            self.at += len(ahead)
            return True
        return False

    def more(self) -> bool:
        return self.at < len(self.text)

    def alternatives(self) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail("groups nested too deeply")
        options = [self.sequence()]
        while self.take("|"):
            options.append(self.sequence())
        self.depth -= 1
        return options[0] if len(options) == 1 else Alt(tuple(options))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.more() and not self.peek("|") and not self.peek(")"):
            parts.append(self.quantified(self.atom()))
        return parts[0] if len(parts) == 1 else Cat(tuple(parts))

    def quantified(self, body: Node) -> Node:
        while self.more():
            low, high = 0, None
            if self.take("*"):
                pass
            elif self.take("+"):
                low = 1
            elif self.take("?"):
                high = 1
            elif self.peek("{"):
                bounds = self.braces()
                if bounds is None:
                    return body
                low, high = bounds
            else:
                return body
            if isinstance(body, (Start, End)):
                self.fail("a repeated anchor")
            if self.take("+"):
                self.fail("possessive repetition")
            self.take("?")  # lazy: the same language
            body = Rep(body, low, high)
        return body

    def braces(self) -> tuple[int, int | None] | None:
        close = self.text.find("}", self.at)
        inside = self.text[self.at + 1 : close] if close > 0 else ""
        low, comma, high = inside.partition(",")
        if not (low.isascii() and low.isdigit()) or (high and not high.isdigit()):
            return None
        self.at = close + 1
        first = int(low)
        last = (int(high) if high else None) if comma else first
        if last is not None and last < first:
            self.fail("repetition bounds out of order")
        return first, last

    def atom(self) -> Node:
        ch = self.text[self.at]
        if ch == "(":
            return self.group()
        if ch == "[":
            self.at += 1
            return self.bracket()
        if ch == "\\":
            self.at += 1
            return self.escape(in_class=False)
        if ch in "*+?":
            self.fail("nothing to repeat")
        self.at += 1
        if ch == "^":
            return Start()
        if ch == "$":
            return End()
        if ch == ".":
            return Class(cs.NOT_LINE_END, cs.NOT_NEWLINE)
        return single(ord(ch))

    def group(self) -> Node:
        self.at += 1
        look: bool | None = None
        if self.take("?"):
            if self.take("="):
                look = False
            elif self.take("!"):
                look = True
            elif self.peek("<=") or self.peek("<!"):
                self.fail("look-behind")
            elif self.take("<") or self.take("P<"):
                close = self.text.find(">", self.at)
                if close < 0:
                    self.fail("group name without end")
                self.at = close + 1
            elif not self.take(":"):
                self.fail("unknown group")
        body = self.alternatives()
        if not self.take(")"):
            self.fail("missing )")
        return body if look is None else Look(body, look)

    def escape(self, in_class: bool) -> Class:
        if not self.more():
            self.fail("a lone backslash")
        ch = self.text[self.at]
        self.at += 1
        if ch in "dD":
            found = Class(cs.DIGITS, cs.unicode_digits())
        elif ch in "wW":
            found = Class(cs.WORDS, cs.unicode_words())
        elif ch in "sS":
            found = Class(cs.SPACES_BOTH, cs.SPACES_EITHER)
        elif ch in "pP" and self.peek("{"):
            found = self.property_class()
        elif ch == "b" and in_class:
            return single(0x08)
        elif ch in "bB":
            self.fail("word boundary")
        elif ch in "123456789":
            self.fail("back-reference")
        elif ch in _ESCAPED:
            return single(_ESCAPED[ch])
        elif ch == "c" and self.text[self.at : self.at + 1].isalpha():
            self.at += 1
            return single(ord(self.text[self.at - 1]) % 32)
        elif ch == "x":
            return single(self.hexadecimal(2))
        elif ch == "u":
            return single(self.unicode_escape())
        elif ch in "AZzGkpP":
            self.fail(f"escape \\{ch}")
        else:
            return single(ord(ch))
        return negated(found) if ch.isupper() else found

    def hexadecimal(self, digits: int) -> int:
        part = self.text[self.at : self.at + digits]
        if len(part) < digits or any(c not in "0123456789abcdefABCDEF" for c in part):
            self.fail("bad hexadecimal escape")
        self.at += digits
        return int(part, 16)

    def unicode_escape(self) -> int:
        if self.take("{"):
            close = self.text.find("}", self.at)
            code = self.hexadecimal(max(close - self.at, 1))
            self.at += 1
        else:
            code = self.hexadecimal(4)
            if 0xD800 <= code < 0xDC00 and self.take("\\u"):
                code = 0x10000 + ((code - 0xD800) << 10) + (self.hexadecimal(4) - 0xDC00)
        if code > cs.LAST:
            self.fail("code point out of range")
        return code

    def property_class(self) -> Class:
        close = self.text.find("}", self.at)
        name = self.text[self.at + 1 : close]
        self.at = close + 1
        key, _, value = name.rpartition("=")
        if key not in ("", "General_Category", "gc"):
            self.fail(f"Unicode property {name}")
        found = unicode_property(value)
        if found is None:
            self.fail(f"Unicode property {name}")
        return Class(found, found)

    def bracket(self) -> Class:
        negative = self.take("^")
        if self.peek("]"):
            self.fail("a class that begins with ] (empty in ECMA-262, a member in Python)")
        both: list[cs.Charset] = []
        either: list[cs.Charset] = []
        while not self.take("]"):
            if not self.more():
                self.fail("missing ]")
            low = self.member()
            if self.peek("-") and not self.peek("-]"):
                self.at += 1
                high = self.member()
                first, last = cs.members(low.both, 1), cs.members(high.both, 1)
                if not first or not last:
                    # "[\\w-.]": the hyphen is a member of its own, in both dialects that allow it
                    hyphen = single(0x2D)
                    both += [low.both, hyphen.both, high.both]
                    either += [low.either, hyphen.either, high.either]
                    continue
                if last[0] < first[0]:
                    self.fail("range out of order")
                low = Class(*[cs.make([(ord(first[0]), ord(last[0]))])] * 2)
            both.append(low.both)
            either.append(low.either)
        found = Class(cs.union(*both), cs.union(*either))
        return negated(found) if negative else found

    def member(self) -> Class:
        ch = self.text[self.at : self.at + 1]
        if not ch:
            self.fail("missing ]")
        self.at += 1
        return self.escape(in_class=True) if ch == "\\" else single(ord(ch))


def parse(pattern: str) -> Node:
    """The syntax tree of `pattern`.

    Raises:
        PatternError: the pattern is malformed, or uses look-behind, word boundaries, back-references or
            another construct that is not regular or not known here.
    """
    parser = _Parser(pattern)
    tree = parser.alternatives()
    if parser.more():
        parser.fail("unmatched )")
    return tree
