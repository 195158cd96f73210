"""The real agent tools, as npm has them: where they are installed, how each is started without a person, the words of its actions."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tests.guard.real.model import Act, Model
from tests.support import ROOT

PREFIX = Path(os.environ.get("GITCOORD_TOOLS_PREFIX") or ROOT / ".tools")
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "opencode": "opencode-ai",
    "copilot": "@github/copilot",
}
Files = dict[str, str]


class RealTool(NamedTuple):
    """A tool, and how a test starts it. A name with a dash is a second way to run the same one."""

    name: str
    words: tuple[str, ...]  # the command line; the prompt follows
    env: Callable[[str], dict[str, str]]  # from the model's address
    home: Callable[[str, Path], Files]  # files below HOME, from the model's address and the project
    write: Callable[[str, str, str], Act]  # an action that changes a line of a file: absolute path, old, new line
    read: Callable[[str], Act]
    shell: Callable[[str], Act]
    trusting: tuple[str, ...] = ()  # words, variables and files that make it run the hooks of a project
    distrusting: tuple[str, ...] = ()  # words for a start without these


def _no_files(url: str, top: Path) -> Files:
    return {}


def _patch(path: str, old: str, new: str) -> Act:
    return Act("apply_patch", {}, f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n")


def _codex_shell(command: str) -> Act:
    return Act("exec_command", {"cmd": command})


def _in_code(act: Act) -> Act:
    """The same action from within the program that a model writes, where it is given nothing but an interpreter."""
    words = json.dumps(act.text or act.args)
    return Act("exec", {}, f"text(await tools.{act.tool}({words}));\n")


def _codex_home(url: str, top: Path) -> Files:
    provider = f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{url}/v1"\nwire_api = "responses"\n'
    provider += 'env_key = "SCRIPTED_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
    trust = f'[projects."{top}"]\ntrust_level = "trusted"\n'
    head = 'model = "gpt-5.5"\nmodel_provider = "scripted"\ncheck_for_update_on_startup = false\n'
    return {".codex/config.toml": head + provider + trust}


def _gemini_home(url: str, top: Path) -> Files:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": True}},
        "general": {"disableAutoUpdate": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    trusted = {str(top.parent): "TRUST_FOLDER"}  # linked work trees lie beside the project
    return {".gemini/settings.json": json.dumps(settings), ".gemini/trustedFolders.json": json.dumps(trusted)}


def _opencode_home(url: str, top: Path) -> Files:
    config = {
        "autoupdate": False, "share": "disabled", "model": "anthropic/claude-sonnet-4-5",
        "small_model": "anthropic/claude-sonnet-4-5", "permission": {"external_directory": "allow"},
        "provider": {"anthropic": {"options": {"baseURL": f"{url}/v1", "apiKey": "none"}}},
    }  # fmt: skip
    return {".config/opencode/opencode.json": json.dumps(config)}


REAL_TOOLS = {
    tool.name: tool
    for tool in (
        RealTool(
            "claude",
            ("claude", "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5", "-p"),
            lambda url: {
                "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1", "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            _no_files,
            lambda path, old, new: Act("Write", {"file_path": path, "content": f"{new}\n"}),
            lambda path: Act("Read", {"file_path": path}),
            lambda command: Act("Bash", {"command": command, "description": "run it"}),
        ),
        RealTool(
            "codex",
            ("codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"),
            lambda url: {"SCRIPTED_KEY": "none"},
            _codex_home,
            _patch,
            lambda path: _codex_shell(f"cat {path}"),
            _codex_shell,
            ("--dangerously-bypass-hook-trust",),
        ),
        RealTool(
            "codex-code",  # with a model that is given an interpreter in place of single tools
            ("codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "-m", "gpt-6.1-sol"),
            lambda url: {"SCRIPTED_KEY": "none"},
            _codex_home,
            lambda path, old, new: _in_code(_patch(path, old, new)),
            lambda path: _in_code(_codex_shell(f"cat {path}")),
            lambda command: _in_code(_codex_shell(command)),
            ("--dangerously-bypass-hook-trust",),
        ),
        RealTool(
            "gemini",
            ("gemini", "--approval-mode", "yolo", "-m", "gemini-2.5-pro", "-p"),
            lambda url: {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"},
            _gemini_home,
            lambda path, old, new: Act("write_file", {"file_path": path, "content": f"{new}\n"}),
            lambda path: Act("read_file", {"file_path": path}),
            lambda command: Act("run_shell_command", {"command": command, "description": "run it"}),
            (".gemini/trustedFolders.json",),
            ("--skip-trust",),  # without, it does not start there
        ),
        RealTool(
            "opencode",
            ("opencode", "run"),
            lambda url: {
                "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_SHARE": "1",
            },
            _opencode_home,
            lambda path, old, new: Act("write", {"filePath": path, "content": f"{new}\n"}),
            lambda path: Act("read", {"filePath": path}),
            lambda command: Act("bash", {"command": command, "description": "run it"}),
        ),
        RealTool(
            "copilot",
            ("copilot", "--allow-all-tools", "--allow-all-paths", "--no-auto-update", "--trust-folder", "-p"),
            lambda url: {
                "COPILOT_PROVIDER_BASE_URL": url, "COPILOT_PROVIDER_TYPE": "anthropic", "COPILOT_MODEL": "claude-sonnet-4-5",
                "COPILOT_PROVIDER_API_KEY": "none", "COPILOT_OFFLINE": "true", "GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS": "true",
            },
            _no_files,
            lambda path, old, new: Act("edit", {"path": path, "old_str": old, "new_str": new}),
            lambda path: Act("view", {"path": path}),
            lambda command: Act("bash", {"command": command, "description": "run it"}),
            ("--trust-folder", "GITHUB_COPILOT_PROMPT_MODE_REPO_HOOKS"),
        ),
    )
}  # fmt: skip


class Ran(NamedTuple):
    code: int
    out: str
    err: str


class Workplace:
    """A home and a directory of programs of its own, in which the tools run; gitcoord is installed there, and its input is recorded."""

    def __init__(self, place: Path, top: Path) -> None:
        self.place, self.top = place, top
        self.home, self.bin, self.record = place / "home", place / "bin", place / "record"
        for directory in (self.home, self.bin, self.record):
            directory.mkdir(parents=True, exist_ok=True)
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n"
        )
        # Codex starts login shells, and Debian's profile for these sets PATH anew.
        (self.home / ".profile").write_text(f'PATH="{self.bin}:$PATH"\n')
        for name in ("git-claim", "git-handoff"):
            (self.bin / name).symlink_to(ROOT / ".venv/bin" / name)
        self.install_guard('exec "$real" guard <"$file"')

    def install_guard(self, line: str) -> None:
        """Let `git coord guard` run this line of a shell; $file has the event, $real is gitcoord's own command."""
        script = self.bin / "git-coord"
        script.write_text(
            f"#!/bin/sh\nreal={ROOT}/.venv/bin/git-coord\n"
            '[ "$1" = guard ] || exec "$real" "$@"\n'
            f'file=$(mktemp {self.record}/$(date +%s%N).XXXXXX); cat >"$file"\n{line}\n'
        )
        script.chmod(0o755)

    def events(self) -> list[dict[str, object]]:
        """The events that the tools sent, in order."""
        return [json.loads(file.read_bytes()) for file in sorted(self.record.iterdir())]

    def env(self, **more: str) -> dict[str, str]:
        path = f"{self.bin}:{PREFIX}/node_modules/.bin:{os.environ['PATH']}"
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "TERM") if name in os.environ}
        # Nothing is fetched from elsewhere: whoever asks a proxy, or npm's registry, finds nobody there.
        nowhere = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY", "npm_config_registry")}
        nowhere |= {"NO_PROXY": "127.0.0.1", "npm_config_fetch_retries": "0"}
        return {**kept, **nowhere, "PATH": path, "HOME": str(self.home), "NO_COLOR": "1", **more}

    def coord(self, *words: str, cwd: Path | None = None, **env: str) -> Ran:
        return self.run(("git", "coord", *words), cwd=cwd, **env)

    def run(self, words: tuple[str, ...], *, cwd: Path | None = None, **env: str) -> Ran:
        done = subprocess.run(
            words, cwd=cwd or self.top, env=self.env(**env), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=150, check=False,
        )  # fmt: skip
        return Ran(done.returncode, done.stdout, done.stderr)

    def play(
        self, tool: RealTool, model: Model, *, cwd: Path | None = None, trusted: bool = True, script: str = "main"
    ) -> Ran:
        """Let the tool work on a prompt until the script ends."""
        left_out = () if trusted else tool.trusting
        for name, text in tool.home(model.url, self.top).items():
            file = self.home / name
            if name in left_out:
                continue
            if file.exists() and name.endswith(".json"):  # `git coord setup --user` wrote it
                text = json.dumps({**json.loads(file.read_text()), **json.loads(text)})
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        words = [word for word in tool.words if word not in left_out]
        words[1:1] = () if trusted else tool.distrusting
        env = {name: value for name, value in tool.env(model.url).items() if name not in left_out}
        return self.run((*words, f"Do the work. [[script {script}]]"), cwd=cwd, **env)
