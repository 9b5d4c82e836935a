"""Invisible characters: control and format characters, writing direction marks and fillers, which are not seen or move other
characters. Stored texts may contain them; what people read shows them as escapes."""

from __future__ import annotations

import re
import unicodedata

#: Control, format and surrogate characters, line and paragraph separators.
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Letters and marks without a glyph.
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_FILLER = re.compile(f"[{_FILLERS}]")
#: The zero-width non-joiner and joiner. Persian and Hindi words are spelled with them, and they join many emoji, so display
#: names may have them. Ids and tags, which are compared, may not.
JOINERS = "\u200c\u200d"


def hidden_in(text: str, keep: str = "") -> str | None:
    """The first invisible character of the text that is not in `keep`; None if there is none."""
    # isprintable() is fast, but also false for unassigned characters, so only its True is conclusive.
    if text.isprintable() and (text.isascii() or _FILLER.search(text) is None):
        return None
    return next((letter for letter in text if letter not in keep and _hidden(letter)), None)


def named(letter: str) -> str:
    """The code point and name of a character, such as `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    name = unicodedata.name(letter, "control character" if unicodedata.category(letter) == "Cc" else "")
    return f"U+{ord(letter):04X} {name}".rstrip()


def visible(text: str, keep: str = "") -> str:
    """The text with invisible characters that are not in `keep` as escapes such as `\\u202e`. In JSON, the value is the
    same."""
    if text.isprintable() and (text.isascii() or _FILLER.search(text) is None):
        return text
    return text.translate({ord(each): _escaped(each) for each in set(text) if each not in keep and _hidden(each)})


def visible_name(text: str) -> str:
    """Like `visible` for a display name, which keeps joiners."""
    return visible(text, keep=JOINERS)


def _hidden(letter: str) -> bool:
    return unicodedata.category(letter) in _CATEGORIES or letter in _FILLERS


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
