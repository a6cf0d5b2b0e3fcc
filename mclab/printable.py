"""Text as it may be shown: what a terminal or a page would obey instead of showing it is written out.

Control characters move the cursor, change titles and colours; marks of direction and letters without width make a text
look like another one (Unicode TR 36 and 39). Files of data (csv, parquet, JSON) keep them: there they are data.
"""

import re

_CONTROLS = "\x00-\x09\x0b-\x1f\x7f-\x9f"
#: Marks of direction, letters without width, separators of lines, tags, and halves of characters: bytes of a file's
#: name that are no UTF-8 stand as such halves in Python.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
_NAMED = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def printable(text: str) -> str:
    r"""The text with every hidden character as `\x1b` or `\u202e`; ends of lines stay."""
    return _HIDDEN.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""As `printable`, ends of lines as `\n` too: what should be one line cannot pretend to be two."""
    return printable(text).replace("\n", r"\n")


def _escaped(found: re.Match[str]) -> str:
    sign, number = found[0], ord(found[0])
    if sign in _NAMED:
        return _NAMED[sign]
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
