"""Find the source file of a dotted path of the user's, as an import would, and read it without running it."""

import ast
import hashlib
import os
import pkgutil
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path

from mclab.config.error import did_you_mean


@dataclass(frozen=True)
class PythonFile:
    """A Python file that defines a dotted path, with its hash and its syntax tree."""

    file: str
    sha256: str
    tree: ast.Module

    def definition(self, name: str) -> ast.ClassDef | ast.FunctionDef | None:
        """Return the class or function of this name; `None` if the file does not define it."""
        kinds = (ast.ClassDef, ast.FunctionDef)
        return next((node for node in reversed(self.tree.body) if isinstance(node, kinds) and node.name == name), None)

    @property
    def defined(self) -> list[str]:
        """The names of the classes and functions at module level."""
        return [node.name for node in self.tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]

    def may_hold(self, name: str) -> bool:
        """Return whether an import of the file may define `name` in another way, e.g. by an import or an assignment."""
        nodes = list(ast.walk(self.tree))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        imported = {alias.asname or alias.name for node in imports for alias in node.names}
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        return name in bound or bool(imported & {name, "*"}) or "__getattr__" in self.defined

    def lineage(self, name: str) -> list[ast.ClassDef]:
        """Return the class of this name and its base classes within this file, the nearest first."""
        node = self.definition(name)
        if not isinstance(node, ast.ClassDef):
            return []
        bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id != name]
        return [node, *(each for base in bases for each in self.lineage(base))]

    def methods(self, name: str) -> dict[str, ast.FunctionDef]:
        """Return the methods of a class, including those of its base classes within this file."""
        nodes = [each for node in reversed(self.lineage(name)) for each in node.body]
        return {each.name: each for each in nodes if isinstance(each, ast.FunctionDef)}

    def called(self, name: str) -> frozenset[str] | None:
        """Return the argument names of a function, or of `forward` or `__call__` of a class.

        `None` if the source has none of them, or if the arguments include `**kwargs`.
        """
        node, methods = self.definition(name), self.methods(name)
        if isinstance(node, ast.ClassDef):
            node = methods.get("forward") or methods.get("__call__")
        if not isinstance(node, ast.FunctionDef) or node.args.kwarg:
            return None
        return frozenset(each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))

    def version(self, name: str) -> int:
        """Return the version of a part; 1 if the source gives none. Raises `ValueError` if it is not 1, 2, ...

        A class gives it as `version = 2`, a function as `name.version = 2` at module level.
        """
        classes = self.lineage(name)
        body = [line for node in reversed(classes) for line in node.body] if classes else self.tree.body
        wanted = "version" if classes else f"{name}.version"
        for line in reversed(body):
            targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
            value = getattr(line, "value", None)
            if any(target is not None and ast.unparse(target) == wanted for target in targets):
                if isinstance(value, ast.Constant) and type(value.value) is int and value.value >= 1:
                    return value.value
                raise ValueError(f"{wanted} is {ast.unparse(value) if value else 'nothing'}; it must be 1, 2, ...")
        return 1


def source_of(path: str) -> PythonFile | None:
    """Return the source file of a dotted path; `None` if its module is not a Python file.

    Raises `ValueError` if there is no such module, or if the file cannot be read.
    """
    file = _file(path.rpartition(".")[0])
    if file is None:
        return None
    try:
        return _read(file, os.stat(file).st_mtime_ns)
    except SyntaxError as error:
        raise ValueError(f"{Path(file).name}:{error.lineno}: {error.msg}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from None


@lru_cache(maxsize=64)
def _read(file: str, changed: int) -> PythonFile:
    content = Path(file).read_bytes()
    return PythonFile(file, hashlib.sha256(content).hexdigest(), ast.parse(content))


def _file(where: str) -> str | None:
    """Return the path of the Python file of the module `where`; `None` if the module is not a Python file.

    It is found as an import would find it, with the current folder searched last. Raises `ValueError` if there is no
    such module.
    """
    invalidate_caches()
    places: list[str] | None = [*(place or os.getcwd() for place in sys.path), os.getcwd()]
    found, parent = None, ""
    for word in where.split("."):
        found = PathFinder.find_spec(word, places)
        if found is None:
            if not parent and (word in sys.builtin_module_names or word in sys.modules):
                return None
            raise ValueError(_missing(word, parent, places or []))
        places, parent = list(found.submodule_search_locations or []), f"{parent}.{word}".lstrip(".")
    return found.origin if found and str(found.origin).endswith(".py") else None


def _missing(word: str, parent: str, places: list[str]) -> str:
    near = [each.name for each in pkgutil.iter_modules(places if parent else [os.getcwd()])]
    place = f"in {parent}" if parent else f"in the current folder ({os.getcwd()}) or among the installed packages"
    return f"there is no module {word} {place}{did_you_mean(word, near, '; ')}"
