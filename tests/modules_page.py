"""docs/modules.md, made from the first line of each module's docstring: `python -m tests.modules_page` writes it."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/modules.md"
_HEAD = """# Modules

Each module's first line, by package. Made by `python -m tests.modules_page`; a test holds that it is current.
[architecture.md](architecture.md) has the packages in their order.
"""


def page() -> str:
    """The whole page."""
    text = _HEAD
    folders = sorted({path.parent for path in (ROOT / "gitcoord").rglob("*.py")})
    for folder in folders:
        text += f"\n## {folder.relative_to(ROOT)}\n\n{_duty(folder / '__init__.py')}\n\n"
        rows = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        text += "".join(f"- `{path.name}`: {_duty(path)}\n" for path in rows)
    return text.replace("\n\n\n", "\n\n")


def _duty(path: Path) -> str:
    """The first sentence or line of the module's docstring, as one line."""
    words = ast.get_docstring(ast.parse(path.read_text())) or ""
    return words.partition("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
