"""The second act of `git coord demo`: hooks, with a remote. What nobody claimed does not leave; nothing stale is deployed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitcoord.cli.demo import Stage

_CONFIG = '[deploy "production"]\n\tremote = origin\n\tref = refs/heads/production\n'


def prepare(stage: Stage) -> None:
    """A bare remote, a policy, the hooks, and `git-claim` on the path of whoever runs them."""
    commands = stage.home / "bin"
    commands.mkdir()
    command = commands / "git-claim"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gitcoord.cli claim "$@"\n')
    command.chmod(0o755)
    stage.env["PATH"] = f"{commands}:{stage.env['PATH']}"
    (stage.repo / ".gitattributes").write_text("src/** gitcoord-claim\n")
    (stage.repo / "src" / "core.py").write_text("# core.py\nfast = False\n\n\n\nslow = True\n")
    (stage.repo / ".gitcoord").mkdir()
    (stage.repo / ".gitcoord/config").write_text(_CONFIG)
    stage.git("add", ".")
    stage.git("commit", "-q", "-m", "src is shared; production is deployed")
    origin = str(stage.home / "origin.git")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", origin], check=True, env=stage.env)
    stage.git("remote", "add", "origin", origin)
    stage.git("push", "-q", "-u", "origin", "main")


def _work(stage: Stage, branch: str, old: str, new: str) -> str:
    """A line changed and committed, past the hooks, on a branch from main."""
    stage.git("checkout", "-q", "-b", branch, "main")
    file = stage.repo / "src" / "core.py"
    file.write_text(file.read_text().replace(old, new))
    stage.git("commit", "--no-verify", "-qam", new)
    argv = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(
        argv, check=True, cwd=stage.repo, env=stage.env, capture_output=True, text=True
    ).stdout.strip()


def scene_unclaimed(stage: Stage) -> bool:
    """With hooks, what nobody claimed does not leave: fred pushes a change of a shared file"""
    prepare(stage)
    installed = stage.show("fred", "coord", "install-hooks")
    stage.core = _work(stage, "fred", "fast = False", "fast = True")
    refused = stage.plain("fred", "push", "-q", "origin", "fred")
    stage.show("fred", "claim", "src/core.py")
    pushed = stage.plain("fred", "push", "-q", "origin", "fred")
    released = stage.show("fred", "claim", "release", "src/core.py")
    return installed == 0 and refused != 0 and (pushed, released) == (0, 0)


def scene_lineage(stage: Stage) -> bool:
    """The claim is free again, but fred's work must not get lost: gina starts from a copy without it"""
    stage.show("gina", "claim", "src/core.py")
    _work(stage, "gina", "slow = True", "slow = False")
    refused = stage.plain("gina", "push", "-q", "origin", "gina")
    print("  she does what the hint says")
    merged = stage.plain("gina", "merge", "-q", "--no-edit", stage.core)
    pushed = stage.plain("gina", "push", "-q", "origin", "gina")
    released = stage.show("gina", "claim", "release", "src/core.py")
    return refused != 0 and (merged, pushed, released) == (0, 0, 0)


def scene_stale_deploy(stage: Stage) -> bool:
    """Nothing is deployed from a stale copy: gina's work landed meanwhile, and hugo does not have it"""
    landed = stage.plain("gina", "push", "-q", "origin", "gina:main")
    stage.git("checkout", "-q", "main")
    refused = stage.plain("hugo", "push", "-q", "origin", "main:production")
    pulled = stage.show("hugo", "coord", "sync", "--pull")
    deployed = stage.plain("hugo", "push", "-q", "origin", "main:production")
    return refused != 0 and (landed, pulled, deployed) == (0, 0, 0)


SCENES = (scene_unclaimed, scene_lineage, scene_stale_deploy)
