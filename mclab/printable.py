"""This module makes text safe to show: it escapes characters that a terminal or a page would act on, or would hide.

Control characters move the cursor and change titles and colours; direction marks and zero-width characters make one
text look like another (Unicode TR 36 and 39). Data files (csv, parquet, JSON) keep these characters unchanged.
"""

import re

_CONTROLS = "\x00-\x09\x0b-\x1f\x7f-\x9f"
#: Direction marks, zero-width characters, line separators, tags, and lone surrogates. Python represents the bytes of a
#: file name that are not UTF-8 by lone surrogates.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_CONTROLS}{_INVISIBLE}]")
_NAMED = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def printable(text: str) -> str:
    r"""Return `text` with every hidden character written as an escape such as `\x1b` or `\u202e`; line ends stay."""
    return _HIDDEN.sub(_escaped, text)


def one_line(text: str) -> str:
    r"""Return `printable(text)` with line ends written as `\n` too, so that it is always one line."""
    return printable(text).replace("\n", r"\n")


def _escaped(found: re.Match[str]) -> str:
    sign, number = found[0], ord(found[0])
    if sign in _NAMED:
        return _NAMED[sign]
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{number - 0xDC00:02x}"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
