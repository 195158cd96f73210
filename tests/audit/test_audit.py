"""`git coord doctor` and `git coord audit`: each item in a repository in which it holds, and in one in which it does not."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from gitcoord.audit.items import ITEMS, OF_DOCTOR, audit
from gitcoord.audit.model import ADVICE, BAD, OK, SEVERITIES, UNKNOWN, Check, ask, at_least, exit_code
from gitcoord.base.errors import CouldNotJudge
from gitcoord.shell import parse
from gitcoord.terminal.call import is_set_up
from gitcoord.world.open import environ, open_repository
from tests.cli.support import World
from tests.cli.test_json import holds
from tests.support import COORD, copy_template, git

CONFIG = """[gitcoord]
\tapprover = ada
\tattribution = require
[guard]
\tautoclaim = true
[role "verify"]
\treadonly = true
[resource "db"]
\tcapacity = 1
[deploy "production"]
\tref = refs/heads/main
\tverify = ./verify.sh
[start]
\tstate = docs/state.md
\tdecisions = docs/decisions.md
\tlessons = docs/lessons.md
"""
ATTRIBUTES = "/Makefile gitcoord-claim\n.env gitcoord-read=deny\n.gitcoord/** gitcoord-claim\n"
MAKEFILE = "deploy:\n\tgit coord once deploy/1 -- kubectl apply -f app.yml\n"


def _safe(place: Path) -> None:
    """A project in which nothing is found."""
    server = place / "server.git"
    git(place, "init", "-q", "--bare", "-b", "main", str(server))
    world = World(place / "project")
    files = {f"docs/{name}.md": f"# {name}\n" for name in ("state", "decisions", "lessons")}
    policy = {".gitcoord/config": CONFIG, ".gitcoord/rules.md": "# Rules\n", ".gitattributes": ATTRIBUTES}
    world.commit({**files, **policy, "Makefile": MAKEFILE, ".env": "KEY=1\n", "verify.sh": "true\n"})
    world.git("config", "gitcoord.alert", "true")


@pytest.fixture
def safe(tmp_path: Path) -> World:
    copy_template(tmp_path, _safe)
    world = World(tmp_path / "project", made=True).init()
    world.git("remote", "add", "backup", str(tmp_path / "server.git"))
    world.coord("install-hooks")
    assert world.coord("watch", "--name", "chat", "--since", "1", "--count", "1").code == 0
    return world


PATH = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def checks(world: World, path: str = PATH["PATH"]) -> dict[str, Check]:
    with chdir(world.top):
        ctx = open_repository(environ(), writing=True)
        try:
            return {check.id: check for check in audit(ctx, None, {**os.environ, "PATH": path}, is_set_up(ctx))}
        finally:
            ctx.store.close()


def _config(old: str, new: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        text = (world.top / ".gitcoord/config").read_text()
        assert old in text
        _commit(world, {".gitcoord/config": text.replace(old, new)})

    return change


def _commit(world: World, files: dict[str, str]) -> None:
    for name, text in files.items():
        world.write(name, text)
    world.git("add", "-A")
    git(world.top, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "change")


def _no_rules(world: World) -> None:
    (world.top / ".gitcoord/rules.md").unlink()
    _commit(world, {})


def _no_policy(world: World) -> None:
    world.git("rm", "-q", ".gitcoord/config", ".gitattributes")
    _commit(world, {})


def _long_ttl(world: World) -> None:
    world.take("src/a.py", "--ttl", "3d")


def _unfinished(world: World) -> None:
    world.coord("once", "mail/1", "--", "sh", "-c", "kill -9 $PPID")


def _another_ledger(world: World) -> None:
    _config("[gitcoord]\n", f"[gitcoord]\n\troot = {'1' * 40}\n")(world)


def _unguarded(world: World) -> None:
    """An agent of Codex runs a command, and no event of its conversation has reached the guard."""
    world.claim("src/a.py", agent="", env={"CODEX_SESSION_ID": "c1"})


def _work_tree_without_hooks(world: World) -> None:
    tree = world.top.parent / "second"
    world.git("worktree", "add", "-q", str(tree), "-b", "second")
    assert checks(world)["work-trees"].state == OK
    world.git("config", "extensions.worktreeConfig", "true")
    git(tree, "config", "--worktree", "core.hooksPath", "/dev/null")


def _nobody_at_the_terminal(world: World) -> None:
    """gitcoord.person names who commits, and suffices for nothing else."""
    world.git("config", "gitcoord.person", "ada@example.com")
    world.git("config", "user.email", "")


def _not_followed(world: World) -> None:
    (world.top / ".git/gitcoord/watch/chat").unlink()


BREAKS: dict[str, Callable[[World], object]] = {
    "ledger": _another_ledger,
    "hooks": lambda world: (world.top / ".git/hooks/pre-commit").unlink(),
    "policy": _no_policy,
    "tools": lambda world: (world.top / ".claude").mkdir(),
    "shared-paths": lambda world: _commit(world, {".gitattributes": ".env gitcoord-read=deny\n"}),
    "mapped": lambda world: _commit(world, {"package-lock.json": "{}\n"}),
    "writers": _config('[role "verify"]\n\treadonly = true\n', ""),
    "resources": lambda world: world.take("@gpu"),
    "secrets": lambda world: _commit(world, {"deploy/id_rsa": "x\n"}),
    "leases": _long_ttl,
    "order": lambda world: _commit(
        world, {".gitcoord/config": (world.top / ".gitcoord/config").read_text() + "[queue]\n\tovertake = 50\n"}
    ),
    "enforced": lambda world: _commit(
        world, {".gitcoord/config": (world.top / ".gitcoord/config").read_text() + "[rollout]\n\tlineage = warn\n"}
    ),
    "fail-closed": _config("autoclaim = true", "autoclaim = true\n\tonError = warn"),
    "autoclaim": _config("autoclaim = true", "autoclaim = false"),
    "approvers": _config("\tapprover = ada\n", ""),
    "attribution": _config("attribution = require", "attribution = off"),
    "rules": _no_rules,
    "memory": _config("lessons = docs/lessons.md", "lessons = docs/gone.md"),
    "idempotent-effects": lambda world: _commit(world, {".github/workflows/x.yml": "run: npm publish\n"}),
    "verified-deploys": _config("\tverify = ./verify.sh\n", ""),
    "alerts": lambda world: world.git("config", "--unset", "gitcoord.alert"),
    "guard": _unguarded,
    "kill-switch": _nobody_at_the_terminal,
    "work-trees": _work_tree_without_hooks,
    "followed": _not_followed,
    "second-copy": lambda world: world.git("remote", "rename", "backup", "origin"),
}


def test_nothing_is_found_in_a_safe_project(safe: World) -> None:
    found = checks(safe)
    assert set(found) >= set(ITEMS) and len(found) >= 20
    assert {id: check.words for id, check in found.items() if check.state != OK} == {
        "signing": "events are not signed: an agent that lies about its name is believed"
    }
    safe.git("config", "gitcoord.signing", "ssh")
    assert checks(safe)["signing"].state == OK
    assert {check.severity for check in found.values()} == set(SEVERITIES)


@pytest.mark.parametrize("item", BREAKS)
def test_each_weakness_is_found(item: str, safe: World) -> None:
    assert checks(safe)[item].state == OK
    BREAKS[item](safe)
    found = checks(safe)[item]
    assert found.state == BAD and found.words and found.help, found


def test_every_item_has_a_case_in_which_it_fails() -> None:
    """Of the others `ledger` to `unfinished-effects` are in tests of their own."""
    alone = {"expired", "unfinished-effects", "server-gate", "authority", "signing", "parser", "commands"}
    assert {*ITEMS, *OF_DOCTOR} == {*BREAKS, *alone}


def test_commands_that_are_not_on_path_are_found(safe: World, tmp_path: Path) -> None:
    assert checks(safe)["commands"].state == OK
    found = checks(safe, str(tmp_path))["commands"]
    assert (found.state, found.severity) == (BAD, "high") and "git-claim, git-coord, git-handoff" in found.words


@pytest.mark.parametrize("fault", ["does not load", "understands nothing"])
def test_a_parser_that_does_not_work_is_found(safe: World, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def analyse(*_: object, **__: object) -> list[object]:
        if fault == "does not load":
            raise OSError("wrong ELF class")
        return []

    monkeypatch.setattr(parse, "analyse", analyse)
    found = checks(safe)["parser"]
    assert (found.state, found.help) == (BAD, "install gitcoord again")


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("Makefile", "release:\n\tnpm publish\n", "Makefile:2 (npm publish)"),
        (".github/workflows/x.yml", "      - run: curl -sS -X POST https://host.invalid/hook\n", "curl -sS -X POST"),
        ("ops/up.sh", "set -e\nterraform apply -auto-approve\n", "ops/up.sh:2 (terraform apply)"),
        ("package.json", '{"scripts": {"release": "npm publish"}}\n', "package.json:1 (npm publish)"),
        ("ops/up.sh", "# npm publish is done by hand\n", ""),
        ("ops/up.sh", "git coord once release/1 -- \\\n  npm publish\n", ""),
        ("ops/up.sh", "git coord deploy live -- \\\n  ./a\nnpm publish\n", "ops/up.sh:3 (npm publish)"),
        ("vendor/x/up.sh", "npm publish\n", ""),
        ("docs/up.md", "npm publish\n", ""),
    ],
)
def test_effects_that_are_not_idempotent(safe: World, name: str, text: str, found: str) -> None:
    _commit(safe, {name: text})
    check = checks(safe)["idempotent-effects"]
    assert (check.state, found in check.words) == (BAD if found else OK, True), check


def test_alerts_reach_somebody(safe: World) -> None:
    for command, state in (("no-such-program --now", BAD), ("cd / && true", OK), ("X=1 notify", OK), ("it's", BAD)):
        safe.git("config", "gitcoord.alert", command)
        assert checks(safe)["alerts"].state == state, command


def test_an_effect_that_was_begun_and_never_ended_is_found(safe: World) -> None:
    _unfinished(safe)
    assert checks(safe)["unfinished-effects"].state == BAD


def test_claims_of_agents_that_went_away_are_found(safe: World) -> None:
    safe.take("src/a.py")
    assert checks(safe)["expired"].state == OK
    safe.fall_silent("alice")
    assert checks(safe)["expired"].state == BAD


def test_a_server_without_the_gate_is_found_and_one_far_away_is_not_judged(tmp_path: Path) -> None:
    copy_template(tmp_path, _safe)
    world = World(tmp_path / "project", made=True)
    server = tmp_path / "server.git"
    world.git("remote", "add", "backup", str(server))
    world.git("push", "-q", "backup", "main")
    done = world.coord("setup", "--yes", "--remote", "backup", "--no-tools", agent="")
    assert checks(world)["server-gate"].state == BAD, done
    assert world.coord("server", "install", str(server), env=PATH).code == 0
    assert checks(world)["server-gate"].state == OK
    (server / "hooks/pre-receive").write_text("#!/bin/sh\n")
    assert checks(world)["server-gate"].words.endswith("Not installed there: pre-receive"), (
        "another hook is not the gate"
    )
    world.git("remote", "set-url", "backup", "ssh://git@host.invalid/x")
    found = checks(world)
    assert (found["server-gate"].state, found["authority"].state) == (UNKNOWN, UNKNOWN)


def test_doctor_in_a_clone_that_is_not_set_up(plain: World) -> None:
    done = plain.coord("doctor", agent="")
    assert (
        done.code == 1
        and "BAD  ledger: gitcoord is not set up in this repository\n       git coord setup\n" in done.out
    )


def test_a_clone_that_has_not_joined_the_projects_ledger(safe: World, tmp_path: Path) -> None:
    _another_ledger(safe)
    git(tmp_path, "clone", "-q", str(safe.top), "clone")
    clone = World(tmp_path / "clone", made=True)
    done = clone.coord("doctor", agent="", env=PATH)
    assert done.code == 1 and "BAD  ledger: this project has a ledger, which this clone has not joined\n" in done.out
    assert done.out.count("git coord setup") == 1 and clone.coord("audit", env=PATH).code == 1


def test_doctor_as_json_and_what_it_advises(safe: World) -> None:
    result = holds(safe.coord("doctor", "--json", agent="", env=PATH), "doctor")
    assert result["ok"] and {row["id"]: row["state"] for row in result["checks"]}["identity"] == ADVICE
    safe.write(".gitcoord/config", "# edited\n")
    rows = {row["id"]: row for row in holds(safe.coord("doctor", "--json"), "doctor")["checks"]}
    assert rows["policy"]["state"] == ADVICE and rows["identity"]["message"] == "you are the agent 'alice'"


# --- each check of doctor, where it fails ------------------------------------------------------------------------------


def doctor(world: World, id: str, **env: str) -> dict[str, str]:
    rows = {
        row["id"]: row
        for row in holds(world.coord("doctor", "--json", agent="", env={**PATH, **env}), "doctor")["checks"]
    }
    found: dict[str, str] = rows[id]
    return found


def _program(place: Path, name: str, text: str) -> dict[str, str]:
    """A program that goes before others on PATH."""
    (place / "bin").mkdir(exist_ok=True)
    (place / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
    (place / "bin" / name).chmod(0o755)
    return {"PATH": f"{place}/bin:{PATH['PATH']}"}


def test_an_old_git(safe: World, tmp_path: Path) -> None:
    assert doctor(safe, "git")["state"] == OK
    real = shutil.which("git")
    old = _program(tmp_path, "git", f'[ "$1" = version ] && echo git version 2.30.2 && exit; exec {real} "$@"')
    assert doctor(safe, "git", **old)["state"] == BAD


def test_a_ledger_that_was_rewound_and_one_of_another_project(safe: World) -> None:
    assert doctor(safe, "ledger")["state"] == OK
    safe.take("src/a.py")
    before = safe.head
    safe.take("src/b.py")
    git(safe.top, "-c", "core.hooksPath=/dev/null", "update-ref", "refs/heads/gitcoord", before)
    row = doctor(safe, "ledger")
    assert row["state"] == UNKNOWN and row["help"], row
    done = safe.coord("doctor", agent="", env=PATH)
    assert done.code == 4


def test_a_misspelt_setting_is_said(safe: World) -> None:
    _commit(safe, {".gitcoord/config": CONFIG + "[rolout]\n\tunclaimed = warn\n"})
    row = doctor(safe, "policy")
    assert (row["state"], row["help"]) == (ADVICE, "git coord policy check") and "rolout.unclaimed" in row["message"]


def test_a_policy_that_is_not_there_not_committed_or_not_readable(safe: World) -> None:
    assert doctor(safe, "policy")["state"] == OK
    text = (safe.top / ".gitcoord/config").read_text()
    _no_policy(safe)
    assert doctor(safe, "policy")["help"] == "git coord setup"
    safe.write(".gitcoord/config", text)
    safe.write(".gitcoord/rules.md", "Be kind.\n")
    row = doctor(safe, "policy")
    assert "is not committed" in row["message"] and "git add -- .gitcoord/config .gitcoord/rules.md" in row["help"], row
    _commit(safe, {".gitcoord/config": "[guard]\n\tonError = perhaps\n"})
    assert doctor(safe, "policy")["state"] == UNKNOWN


def test_hooks_tools_guard_and_names(safe: World) -> None:
    for id in ("hooks", "tools", "guard"):
        assert doctor(safe, id)["state"] == OK
    _unguarded(safe)
    (safe.top / ".gemini").mkdir()
    (safe.top / ".git/hooks/pre-push").chmod(0o644)
    rows = {id: doctor(safe, id) for id in ("hooks", "tools", "guard", "identity")}
    assert {row["state"] for id, row in rows.items() if id != "identity"} == {BAD}
    assert rows["tools"]["help"] == "git coord setup --tool gemini" and "/hooks" in rows["guard"]["help"]
    assert rows["identity"]["state"] == ADVICE


def test_many_loose_objects(safe: World) -> None:
    assert doctor(safe, "objects")["state"] == OK
    place = safe.top / ".git/objects/17"
    place.mkdir(exist_ok=True)
    for number in range(20_000):
        (place / f"{number:038x}").touch()
    assert (doctor(safe, "objects")["state"], doctor(safe, "objects")["help"]) == (ADVICE, "git gc")


def test_connections_that_are_not_shared(tmp_path: Path) -> None:
    copy_template(tmp_path, _safe)
    world = World(tmp_path / "project", made=True)
    world.git("remote", "add", "backup", str(tmp_path / "server.git"))
    world.git("push", "-q", "backup", "main")
    world.coord("setup", "--yes", "--remote", "backup", "--no-tools", agent="")
    assert doctor(world, "authority")["state"] == OK
    world.git("remote", "set-url", "backup", "ssh://git@host.invalid/x")
    for said, state in (("controlmaster auto", OK), ("controlmaster no", ADVICE)):
        ssh = _program(tmp_path, "ssh", f'[ "$1" = -G ] && echo {said} && exit; exit 255')
        assert doctor(world, "ssh", **ssh)["state"] == state
        assert doctor(world, "authority", **ssh)["state"] == UNKNOWN


def test_setup_ends_with_what_does_not_work_yet(safe: World, tmp_path: Path) -> None:
    words = ("setup", "--yes", "--no-tools")
    whole = safe.coord(*words, agent="", env=PATH)
    assert whole.code == 0 and "git coord doctor" not in whole.out
    assert holds(safe.coord(*words, "--json", agent="", env=PATH), "set up whole")["not_in_place"] == []
    only = _program(tmp_path, "git", f'exec {shutil.which("git")} "$@"')["PATH"].split(":")[0]
    lacking = safe.coord(*words, agent="", env={"PATH": f"{only}:/usr/bin:/bin"})
    assert "what does not work yet (git coord doctor):\n  BAD  commands: not on PATH: " in lacking.out, lacking


def test_doctor_shows_what_it_will_do_and_a_no_changes_nothing(safe: World) -> None:
    (safe.top / ".git/hooks/pre-push").unlink()
    with safe.terminal("doctor", "--fix", argv=COORD, env=PATH) as terminal:
        terminal.until(lambda shown: b"go on? [Y/n]" in shown)
        shown = terminal.shown.decode()
        terminal.type("n\n")
        assert terminal.end().code == 1
    assert (
        shown.index("hooks: gates that do not run here: pre-push") < shown.index("will install") < shown.index("go on?")
    )
    assert not (safe.top / ".git/hooks/pre-push").exists()


def test_doctor_puts_the_hooks_right(safe: World) -> None:
    (safe.top / ".git/hooks/pre-push").unlink()
    assert safe.coord("doctor").code == 1
    assert safe.coord("doctor", "--fix", agent="", env=PATH).code == 0
    assert (safe.top / ".git/hooks/pre-push").exists() and safe.coord("doctor", env=PATH).code == 0


def test_a_fix_that_leaves_something_wrong_says_so(safe: World) -> None:
    (safe.top / ".git/hooks/pre-push").unlink()
    _unguarded(safe)
    done = safe.coord("doctor", "--fix", agent="", env=PATH)
    assert done.code == 1 and "what does not work yet" in done.out and "guard" in done.out, done
    assert (safe.top / ".git/hooks/pre-push").exists()
    done = safe.coord("doctor", "--fix", agent="", env=PATH)
    assert done.code == 2 and "/hooks" in done.err, "nothing that setup could put right"


def test_audit_as_json_text_and_markdown(safe: World) -> None:
    result = holds(safe.coord("audit", "--json", env=PATH), "audit")
    assert result["ok"] and result["fail_on"] == "high"
    safe.git("config", "--unset", "gitcoord.alert")
    assert safe.coord("audit", env=PATH).code == 1 and safe.coord("audit", "--fail-on", "critical", env=PATH).code == 0
    _commit(safe, {"a|b<script>/id_rsa": "x\n"})
    done = safe.coord("audit", "--markdown")
    assert "a\\|b&lt;script>/id_rsa" in done.out and "| alerts | high | BAD |" in done.out
    assert safe.coord("audit", "--fail-on", "much").code == 2


def test_checks_fit_the_terminal(safe: World) -> None:
    safe.git("config", "--unset", "gitcoord.alert")
    lines = safe.at_terminal("audit", argv=COORD, env={**PATH, "NO_COLOR": "1"}, columns=60).out.splitlines()
    at = next(
        at for at, line in enumerate(lines) if line.startswith("  BAD  alerts: nobody is told of deadlocks, expiries")
    )
    assert lines[at + 1].startswith("       ") and lines[-1].endswith("; of severity high or higher: alerts")
    assert [line for line in lines[:-1] if len(line) > 60] == []


def test_three_answers() -> None:
    def fails() -> Check:
        raise CouldNotJudge("no answer", hints=("ask again",))

    assert ask("x", fails) == Check("x", UNKNOWN, "no answer", "ask again")
    bad, unknown = Check("a", BAD, "", "", "low"), Check("b", UNKNOWN, "", "", "high")
    assert [exit_code(rows) for rows in ([], [unknown], [unknown, bad])] == [0, 4, 1]
    assert at_least([bad, unknown], "medium") == [unknown]
