"""What a shell command would do to files: its text is parsed by tree-sitter, `core/shell` knows what commands mean."""

from gitcoord.core.shell.effects import UNKNOWN, Effect


def analyse(command: str, *, cwd: str, home: str) -> "tuple[Effect, ...]":
    """What the command writes, deletes, reads and gets around, in the order it is met; nothing for a harmless one.

    Never raises: what cannot be parsed is one effect of the kind 'unknown'.
    """
    return (Effect(UNKNOWN, "", command, "shell commands are not looked into yet"),) if command.strip() else ()
