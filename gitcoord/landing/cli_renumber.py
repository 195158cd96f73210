"""Renumbering: files that a branch adds to a sequence get the next numbers of trunk when they land. Nothing but their names changes, and the texts that
`[land] renumberCommand` corrects."""

from __future__ import annotations

from gitcoord.base.errors import GitcoordError, StoreError, refused
from gitcoord.base.names import printable, shell_word
from gitcoord.claims.model import Item
from gitcoord.claims.work_facts import parse_raw
from gitcoord.effects.sequences import Sequence, added_to, differ_in_number, sequences, stem
from gitcoord.git.commands.objects import (
    commit_like,
    commit_merge,
    commit_stand_in,
    diff_names,
    diff_raw,
    empty_tree,
    grep_tree,
    list_new,
)
from gitcoord.git.commands.worktrees import read_tree, update_index, update_index_from_files, with_index, write_tree
from gitcoord.git.files import remove_file
from gitcoord.git.long_process import run_check
from gitcoord.git.process import Env, without_grafts
from gitcoord.landing.bring import Order, base_of, signs, tree_of
from gitcoord.landing.cli_check import check_environ
from gitcoord.landing.model import MERGE, Rules, number_item
from gitcoord.landing.scratch import Scratch
from gitcoord.startup.annotations import Iterable
from gitcoord.terminal.call import Call
from gitcoord.terminal.screen import Row

_SHOWN = 10


class Renumber:
    """The numbers of one landing. `names`: the files that got another name, as of the last time."""

    def __init__(
        self, call: Call, rules: Rules, order: Order, pairs: Iterable[tuple[str, str]], *, looks: bool = False
    ) -> None:
        declared = sequences(pairs) if rules.renumber else {}
        self._call = call
        self._env = without_grafts(call.ctx.repo.env)
        self._order = order
        self._looks = looks
        self._command, self._timeout = rules.renumber_command, rules.timeout
        self._sequences = [declared[name] for name in rules.renumber if name in declared and declared[name].patterns]
        self._known: dict[tuple[str, str], str] = {}  # by trunk and the files on it: the files with their numbers
        self.names: dict[str, str] = {}

    def items(self, old: str, new: str) -> tuple[Item, ...]:
        """The resources that this landing needs: one for each sequence to which it adds files."""
        return tuple(number_item(each.name) for each in self._sequences if self._added(each, old, new)[0])

    def plan(self, old: str, new: str) -> dict[str, str]:
        """The files that get another name, and those names. `new`: brought onto `old`, with the branch's own names. Refused where one has landed before."""
        return self._plan(old, new) or {}

    def _plan(self, old: str, new: str) -> dict[str, str] | None:
        """The same; None where trunk has all of it under other names."""
        found: dict[str, str] = {}
        before: dict[str, tuple[str, bool]] = {}
        for sequence in self._sequences if new not in ("", old) else ():
            added, there = self._added(sequence, old, new)
            found.update(added)
            before.update(self._landed_before(sequence, added, there, old))
        if not before:
            return {path: name for path, name in found.items() if path != name}
        changed = diff_names(self._env, old, new).require("git cannot list what the branch changes").entries
        if all(path in before and before[path][1] for path in changed):
            return None
        path, (name, _) = min(before.items(), key=lambda row: row[1][1])  # a changed one first
        ctx, trunk = self._call.ctx, self._order.trunk
        place = shell_word(f"{ctx.remote}/{trunk}" if ctx.remote else trunk)
        raise refused(
            "landed-before",
            f"{printable(trunk)} has {printable(path)} as {printable(name)} already: nothing has landed",
            f"bring trunk into the branch, and change that file there: git merge {place} && git rm {shell_word(path)}",
            "if it is another file, give it a name of its own: git mv",
        )

    def _landed_before(
        self, sequence: Sequence, added: Iterable[str], there: dict[str, list[str]], old: str
    ) -> dict[str, tuple[str, bool]]:
        """The files that trunk has with another number, each with that name, and whether it is unchanged: a squash or a rebase leaves the branch's commits out
        of trunk, so git takes them for new ones."""
        trunk, commits, found = self._files(sequence, old) if added else {}, list[str](), {}
        base = base_of(self._call.ctx, old, self._order.tip) if trunk else ""
        for name in self._files(sequence, base) if base else ():
            trunk.pop(name, None)  # from before the branch: nothing of it has landed as that
        for path, name in ((path, name) for path in added for name in trunk if differ_in_number(path, name)):
            if not commits:
                listed = list_new(self._env, self._order.tip, old).require("git cannot list the branch's commits").lines
                commits = [row.partition(" ")[0] for row in listed]
            had = self._call.ctx.local.read([f"{commit}:{path}" for commit in commits])
            if any(one is not None and one.oid == trunk[name][1] for one in had):
                found[path] = name, there[path] == trunk[name]
        return found

    def rows(self) -> list[Row]:
        """The names as an answer shows them."""
        return [{"from": path, "to": name} for path, name in self.names.items()]

    def __call__(self, old: str, new: str) -> str:
        """The commit in which the files have their numbers: `new` itself where they have them, `old` where trunk has all. Refused where a text names an old one."""
        names = self._plan(old, new)
        self.names = names or {}
        if names is None:
            return old
        if not self.names:
            return new
        key = (old, tree_of(self._env, new))
        if key not in self._known:
            self._known[key] = self._renamed(old, new)
        return self._commit(old, new, self._known[key])

    def _added(self, sequence: Sequence, old: str, new: str) -> tuple[dict[str, str], dict[str, list[str]]]:
        """The files that are added with their names on trunk, and mode and blob of each file of the sequence."""
        there = self._files(sequence, new)
        return added_to(sequence, set(self._files(sequence, old)), set(there)), there

    def _files(self, sequence: Sequence, commit: str) -> dict[str, list[str]]:
        """Mode and blob of each file of the sequence."""
        specs = [f":(top,glob){pattern}" for pattern in sequence.patterns]
        found = diff_raw(self._env, empty_tree(self._env), commit, *specs).require("git cannot list the numbers in use")
        return {row[0]: row[1:] for row in parse_raw(found.out)}

    # --- the files

    def _renamed(self, old: str, new: str) -> str:
        """The tree with the new names, in which no text of the branch names an old one."""
        # An agent lands once at a time, so what a killed process leaves is replaced. It may look meanwhile.
        index = self._call.ctx.scratch(f"landing/index-{self._call.actor().agent}{':look' if self._looks else ''}")
        remove_file(f"{index}.lock")
        env = with_index(self._env, index)
        try:
            tree = self._rename(env, old, new)
            if self._lines(old, tree) and self._command:
                tree = self._correct(env, old, tree)
            lines = self._lines(old, tree)
            if lines:
                raise self._refusal(lines)
            return tree
        finally:
            remove_file(index)

    def _rename(self, env: Env, old: str, new: str) -> str:
        files = {path: row for each in self._sequences for path, row in self._added(each, old, new)[1].items()}
        nothing = "0" * self._call.ctx.store.oid_length
        entries = [f"0 {nothing}\t{path}" for path in self.names]
        entries += [f"{files[path][0]} {files[path][1]}\t{name}" for path, name in self.names.items()]
        read_tree(env, new).require("git cannot read the files that land", StoreError)
        data = "".join(f"{entry}\0" for entry in entries).encode("utf-8", "surrogateescape")
        update_index(env, data, whole=True).require("git cannot rename the files", StoreError)
        return write_tree(env, whole=True).require("git cannot write the files", StoreError).text

    def _commit(self, old: str, new: str, tree: str) -> str:
        """The commit that lands with these files instead. A fast-forward becomes a merge: the branch's own commits stay as they are."""
        env, order = self._env, self._order
        sign = signs(env)
        if order.how == MERGE and new == order.tip:
            message = f"Merge branch '{order.branch}'\n" + (f"\nAgent: {order.agent}\n" if order.agent else "")
            made = commit_merge(env, tree, (old, new), message.encode("utf-8", "surrogateescape"), sign=sign)
        else:
            found = self._call.ctx.local.read([new])[0]
            head = found.data.partition(b"\n\n")[0] if found is not None else b""
            parents = [line[7:].decode() for line in head.split(b"\n") if line.startswith(b"parent ")]
            made = commit_like(env, new, tree, parents, sign=sign)
        return made.require("git cannot make the commit").text

    # --- texts

    def _words(self) -> list[str]:
        """The words by which a text names a file: its name up to the first dot, or all of it where that is but a number."""
        names = [path.rpartition("/")[2] for path in self.names]
        return sorted({name if stem(name).isdecimal() else stem(name) for name in names})

    def _texts(self, old: str, tree: str) -> list[str]:
        return diff_names(self._env, old, tree).require("git cannot list what the branch changes").entries

    def _lines(self, old: str, tree: str) -> list[str]:
        """The lines of the branch's files that name an old one."""
        found = grep_tree(self._env, tree, self._words(), self._texts(old, tree)).lines
        return [line.removeprefix(f"{tree}:") for line in found]

    def _refusal(self, lines: list[str]) -> GitcoordError:
        shown = [f"  {printable(line[:200])}" for line in lines[:_SHOWN]]
        self._call.screen.note("these lines name files by numbers that change:", *shown)
        if len(lines) > _SHOWN:
            self._call.screen.note(f"  and {len(lines) - _SHOWN} more")
        new = ", ".join(f"{path} -> {name}" for path, name in list(self.names.items())[:3])
        error = refused(
            "named",
            f"{printable(self._order.branch)} names files whose numbers change when it lands ({printable(new)}): nothing has landed",
            "name them without their numbers, or rename them in the branch: git mv",
            "or let a command of the project correct it: [land] renumberCommand in .gitcoord/config",
        )
        error.data["lines"] = lines[:100]
        return error

    def _correct(self, env: Env, old: str, tree: str) -> str:
        """The tree after the project's command, which is run for each file that got another name, as OLD and NEW. Only texts that named one are taken."""
        ctx = self._call.ctx
        found = grep_tree(self._env, tree, self._words(), self._texts(old, tree), files=True).entries
        texts = [name.removeprefix(f"{tree}:") for name in found]
        from gitcoord.sessions.cli_supervisor import become_subreaper

        become_subreaper()
        with Scratch(ctx) as scratch:
            place = scratch.fill(commit_stand_in(self._env, tree).require("git cannot make the commit").text)
            for path, name in self.names.items():
                names = {
                    b"OLD": path.encode("utf-8", "surrogateescape"),
                    b"NEW": name.encode("utf-8", "surrogateescape"),
                }
                environ = {**check_environ(self._call.environ, scratch), **names}
                code, output = run_check(self._command, place, environ, self._timeout, lambda: 60.0)
                if code != 0:
                    words = printable(output.decode("utf-8", "replace").strip()[-300:])
                    raise refused(
                        "named",
                        f"renumberCommand ended with {code}: {words}: nothing has landed",
                        "correct [land] renumberCommand in .gitcoord/config, or ask a person",
                    )
            inside = {**env, b"GIT_WORK_TREE": place.encode("utf-8", "surrogateescape")}
            data = "".join(f"{name}\0" for name in texts).encode("utf-8", "surrogateescape")
            update_index_from_files(inside, data).require("git cannot read the corrected files", StoreError)
            return write_tree(env, whole=True).require("git cannot write the files", StoreError).text
