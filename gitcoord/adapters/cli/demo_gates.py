"""The second act of `git coord demo`: hooks, with a remote. What nobody claimed does not leave; nothing stale is deployed."""

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitcoord.adapters.cli.demo import Stage

_CONFIG = '[deploy "production"]\n\tremote = origin\n\tref = refs/heads/production\n'


def prepare(stage: "Stage") -> None:
    """A bare remote, a policy, the hooks, and `git-claim` on the path of whoever runs them."""
    commands = stage.home / "bin"
    commands.mkdir()
    command = commands / "git-claim"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gitcoord.adapters.cli claim "$@"\n')
    command.chmod(0o755)
    stage.env["PATH"] = f"{commands}:{stage.env['PATH']}"
    (stage.repo / ".gitattributes").write_text("src/** gitcoord-claim\n")
    (stage.repo / "src" / "core.py").write_text("# core.py\n")
    (stage.repo / ".gitcoord").mkdir()
    (stage.repo / ".gitcoord/config").write_text(_CONFIG)
    stage.git("add", ".")
    stage.git("commit", "-q", "-m", "src is shared; production is deployed")
    origin = str(stage.home / "origin.git")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True, env=stage.env)
    stage.git("remote", "add", "origin", origin)
    stage.git("push", "-q", "-u", "origin", "main")


def _work(stage: "Stage", branch: str, start: str, line: str) -> None:
    stage.git("checkout", "-q", "-b", branch, start)
    file = stage.repo / "src" / "core.py"
    file.write_text(file.read_text() + line + "\n")
    stage.git("commit", "--no-verify", "-qam", line)


def scene_unclaimed(stage: "Stage") -> bool:
    """With hooks, what nobody claimed does not leave: fred pushes a change of a shared file"""
    prepare(stage)
    installed = stage.show("fred", "coord", "install-hooks")
    _work(stage, "fred", "main", "fast = True")
    refused = stage.plain("fred", "push", "-q", "origin", "fred")
    stage.show("fred", "claim", "src/core.py")
    pushed = stage.plain("fred", "push", "-q", "origin", "fred")
    released = stage.show("fred", "claim", "release", "src/core.py")
    return installed == 0 and refused != 0 and (pushed, released) == (0, 0)


def scene_lineage(stage: "Stage") -> bool:
    """The claim is free again, but fred's work must not get lost: gina starts from a copy without it"""
    stage.show("gina", "claim", "src/core.py")
    _work(stage, "gina", "main", "slow = False")
    refused = stage.plain("gina", "push", "-q", "origin", "gina")
    print("  gina brings his work in, and does hers on top")
    stage.git("checkout", "-q", "-B", "gina", "fred")
    file = stage.repo / "src" / "core.py"
    file.write_text(file.read_text() + "slow = False\n")
    committed = stage.plain("gina", "commit", "-q", "-am", "on top of fred's")
    pushed = stage.plain("gina", "push", "-q", "origin", "gina")
    released = stage.show("gina", "claim", "release", "src/core.py")
    return refused != 0 and (committed, pushed, released) == (0, 0, 0)


def scene_stale_deploy(stage: "Stage") -> bool:
    """Nothing is deployed from a stale copy: gina's work landed meanwhile, and hugo does not have it"""
    landed = stage.plain("gina", "push", "-q", "origin", "gina:main")
    stage.git("checkout", "-q", "main")
    refused = stage.plain("hugo", "push", "-q", "origin", "main:production")
    pulled = stage.show("hugo", "coord", "sync", "--pull")
    deployed = stage.plain("hugo", "push", "-q", "origin", "main:production")
    return refused != 0 and (landed, pulled, deployed) == (0, 0, 0)


SCENES = (scene_unclaimed, scene_lineage, scene_stale_deploy)
