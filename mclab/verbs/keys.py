"""`mclab keys WORD`: find the keys that have a word in their name or meaning."""

from mclab.config.error import nearest, suggestion
from mclab.config.keys import Key, all_keys
from mclab.config.strict import ConfigError, cut


def matching(word: str) -> list[Key]:
    """Return all keys whose path or meaning contains `word`, in upper or lower case.

    Raises `ConfigError`, with the nearest names, if there is no such key.
    """
    wanted = word.casefold()
    found = [key for key in all_keys() if wanted in key.path.casefold() or wanted in key.meaning.casefold()]
    if found:
        return found
    paths = {key.path: key.path.rpartition(".")[2] for key in all_keys()}
    near = nearest(wanted, paths) + [
        path for name in nearest(wanted, paths.values(), 2) for path in paths if paths[path] == name
    ]
    hint = suggestion(list(dict.fromkeys(near))[:3]) or "mclab keys lists all keys"
    raise ConfigError(f"{cut(word)}: no key has this text in its name or meaning; {hint}")
