"""The parser itself, loaded as cheaply as it can be: two C modules, without the packages around them.

`import tree_sitter` loads typing, and its C module `re` and `enum`, for queries and log messages that nobody here uses:
that takes longer than a whole verdict. Where these modules are not loaded yet, stand-ins are there while the C module is
loaded, and gone again afterwards.
"""

from __future__ import annotations

import _imp
import posix
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import EXTENSION_SUFFIXES, ExtensionFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from tree_sitter import Parser
else:
    ModuleType = type(sys)

_made: list[Parser] = []


class NoParser(Exception):
    """tree-sitter is not installed here, or cannot be loaded."""


class _StandIn(ModuleType):
    """A module of which anything may be asked, and nothing used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: int


def parser() -> Parser:
    if not _made:
        try:
            core, bash = _load("tree_sitter"), _load("tree_sitter_bash")
            _made.append(core.Parser(core.Language(bash.language())))
        except (ImportError, OSError, AttributeError, TypeError, ValueError) as error:
            raise NoParser(f"the parser for shell commands cannot be loaded ({type(error).__name__})") from None
    return _made[0]


def _load(package: str) -> Any:
    name = f"{package}._binding"
    if name in sys.modules:
        return sys.modules[name]
    file = _file(package)
    away = [one for one in ("re", "enum") if one not in sys.modules]
    for one in away:
        sys.modules[one] = _StandIn(one)
    try:
        spec = ModuleSpec(name, ExtensionFileLoader(name, file), origin=file)
        module = _imp.create_dynamic(spec)
        _imp.exec_dynamic(module)
    finally:
        for one in away:
            sys.modules.pop(one, None)
    return module


def _file(package: str) -> str:
    for place in sys.path:
        for suffix in EXTENSION_SUFFIXES:
            file = f"{place}/{package}/_binding{suffix}"
            try:
                posix.stat(file)
            except OSError:
                continue
            return file
    raise ImportError(package)
