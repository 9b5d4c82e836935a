"""Characters that can't be seen, or that make others be seen elsewhere: control characters, marks of writing direction,
format characters and fillers. What is stored may hold them; what people read shows them by their numbers."""

from __future__ import annotations

import re
import unicodedata

#: Control, format and surrogate characters, separators of lines and paragraphs.
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Letters and marks that have no shape.
_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_FILLER = re.compile(f"[{_FILLERS}]")
#: The zero-width non-joiner and joiner. Words of Persian and Hindi are spelled with them, and many emoji are joined by them:
#: names that people give may have them. Ids and tags, which are compared, may not.
JOINERS = "\u200c\u200d"


def hidden_in(text: str, keep: str = "") -> str | None:
    """The first of these characters in the text, but for those to keep."""
    # isprintable() is quick, but refuses more, as characters that are not assigned yet: it can only acquit.
    if text.isprintable() and (text.isascii() or _FILLER.search(text) is None):
        return None
    return next((letter for letter in text if letter not in keep and _hidden(letter)), None)


def named(letter: str) -> str:
    """Number and name of a character, such as `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    name = unicodedata.name(letter, "control character" if unicodedata.category(letter) == "Cc" else "")
    return f"U+{ord(letter):04X} {name}".rstrip()


def visible(text: str, keep: str = "") -> str:
    """The text with these characters as `\\u202e`, but for those to keep. In JSON, that is the same value."""
    if text.isprintable() and (text.isascii() or _FILLER.search(text) is None):
        return text
    return "".join(_escaped(letter) if letter not in keep and _hidden(letter) else letter for letter in text)


def visible_name(text: str) -> str:
    """The same for a name: with the joiners that its language needs."""
    return visible(text, keep=JOINERS)


def _hidden(letter: str) -> bool:
    return unicodedata.category(letter) in _CATEGORIES or letter in _FILLERS


def _escaped(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
