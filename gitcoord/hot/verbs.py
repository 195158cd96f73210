"""The verbs of `git claim`: values in, one app function called, words out, an exit code back."""

import posix

from gitcoord.core.durations import format_duration, parse_duration
from gitcoord.core.sessions import Actor
from gitcoord.errors import UsageError
from gitcoord.hot import paths
from gitcoord.hot.identity import resolve, resolve_or_none
from gitcoord.names import check_word, printable, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcoord.app.context import Context
    from gitcoord.core.kinds.claim import Take
    from gitcoord.hot.render import Row, Screen
    from gitcoord.store.process import Environ

    Values = dict[str, "str | bool"]

_LONGEST_TEXT = 1000


class Call:
    """One call of a verb: what it works with."""

    def __init__(self, ctx: "Context", screen: "Screen", environ: "Environ") -> None:
        self.ctx = ctx
        self.screen = screen
        self.environ = environ

    def actor(self) -> "Actor":
        return resolve(self.ctx, self.environ, terminal=at_terminal())

    def repairer(self) -> "Actor":
        """Mending asks for no agent: whoever has no name yet is 'fsck'."""
        return self.onlooker() or Actor("fsck")

    def onlooker(self) -> "Actor | None":
        """Nobody in particular may look too."""
        return resolve_or_none(self.ctx, self.environ, terminal=at_terminal())


def at_terminal() -> bool:
    return posix.isatty(0) and posix.isatty(2)


def run(verb: str, call: Call, values: "Values", words: list[str]) -> int:
    handler = {
        "take": take, "release": release, "renew": renew, "list": list_, "show": show, "check": check,
        "disown": disown, "takeover": takeover,
    }[verb]  # fmt: skip
    return handler(call, values, words)


def text(values: "Values", name: str) -> str:
    """An option's text: one line that cannot upset a terminal."""
    value = str(values.get(name, ""))
    if len(value) > _LONGEST_TEXT:
        raise UsageError(f"--{name} is longer than {_LONGEST_TEXT} characters")
    if not all(c.isprintable() for c in value):
        raise UsageError(f"--{name} holds a character that cannot be printed: {quote(value[:60])}")
    return value


def number(values: "Values", name: str, default: int = 0) -> int:
    value = str(values.get(name, default))
    if not (value.isascii() and value.isdecimal() and len(value) < 16):
        raise UsageError(f"--{name} needs a number, not {quote(value[:40])}")
    return int(value)


def duration(values: "Values", name: str) -> int:
    return parse_duration(str(values[name])) if name in values else 0


# --- verbs that change something ----------------------------------------------------------------------------------


def take(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.core.kinds.claim import Take

    nonce = str(values.get("nonce", ""))
    if "nonce" in values:
        check_word(nonce, "nonce")
    task = str(values.get("task", ""))
    if task:
        check_word(task, "task")
    command = Take(
        actor=call.actor(),
        items=paths.items(call.ctx.repo, words),
        mode=str(values.get("mode", "write")),
        ttl=duration(values, "ttl"),
        expected=duration(values, "expect"),
        reason=text(values, "message"),
        task=task,
        units=number(values, "units", 1),
        nonce=nonce,
        keep=bool(nonce),
    )
    if values.get("dry-run"):
        return _would(call, command)
    wait = duration(values, "wait")
    if wait:
        from gitcoord.hot.wait import take_in_time

        result = take_in_time(call, command, wait)
    else:
        from gitcoord.app.claims import take as app_take

        result = app_take(call.ctx, command)
    call.screen.answer(result)
    claims: list[Row] = result["claims"]  # type: ignore[assignment]
    for claim in claims:
        verb = "still hold" if result["renewed"] else "claimed"
        mode = "" if claim["mode"] == "write" else f" ({claim['mode']})"
        ttl = format_duration(int(str(claim["ttl_seconds"])))
        call.screen.say(
            f"{verb} {call.screen.paint(printable(str(claim['path'])), 'bold')}{mode}, token {claim['token']}, for {ttl} of silence"
        )
    _lost(call, result)
    return 0


def _would(call: Call, command: "Take") -> int:
    """Decide without doing."""
    from gitcoord.app.claims import would_take

    result = would_take(call.ctx, command)
    call.screen.answer({**result, "dry_run": True})
    call.screen.say(*(f"would claim {printable(str(claim['path']))}" for claim in result["claims"]))  # type: ignore[attr-defined]
    return 0


def release(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.app.claims import release as app_release

    if not words and not values.get("all"):
        raise UsageError("name the paths, or say --all", hints=("what you hold: git claim list --mine",))
    if words and values.get("all"):
        raise UsageError("--all goes without paths")
    commit = _commit(call, str(values["commit"])) if "commit" in values else ""
    items = paths.items(call.ctx.repo, words)
    result = app_release(call.ctx, call.actor(), items, commit=commit, dirty=bool(values.get("dirty")))
    call.screen.answer(result)
    released: list[Row] = result["released"]  # type: ignore[assignment]
    for row in released:
        files: list[object] = row["files"]  # type: ignore[assignment]
        carried = f"with {str(row['commit'])[:12]}, {len(files)} file(s)" if files else "no change"
        name = ("@" if row["space"] == "resource" else "") + printable(str(row["path"]))
        call.screen.say(f"released {call.screen.paint(name, 'bold')} ({carried})")
    if not released:
        call.screen.say("you hold nothing")
    _lost(call, result)
    return 0


def _commit(call: Call, word: str) -> str:
    from gitcoord.store.process import run as run_process

    argv = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", word + "^{commit}"]
    code, out, _ = run_process(argv, call.ctx.repo.env)
    if code:
        raise UsageError(f"{quote(word[:80])} is not a commit here")
    return out.decode().strip()


def renew(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.app.claims import renew as app_renew

    result = app_renew(call.ctx, call.actor(), paths.items(call.ctx.repo, words), duration(values, "ttl"))
    call.screen.answer(result)
    call.screen.say("renewed")
    _lost(call, result)
    return 0


def disown(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.app.claims import disown as app_disown

    item = paths.one(call.ctx.repo, words[0])
    if item.space != "path":
        raise UsageError("resources have no lineage")
    result = app_disown(call.ctx, call.actor(), item.name, text(values, "reason"))
    call.screen.answer(result)
    call.screen.say(f"disowned {len(result['disowned'])} release(s) below {printable(item.name)}")  # type: ignore[arg-type]
    return 0


def takeover(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.app.claims import takeover as app_takeover

    item = paths.one(call.ctx.repo, words[0])
    result = app_takeover(call.ctx, call.actor(), item, number(values, "token"), text(values, "reason"))
    call.screen.answer(result)
    call.screen.say(f"took over {printable(words[0])} from {result['taken_from']['agent']}, token {result['token']}")  # type: ignore[index]
    return 0


def _lost(call: Call, result: "Row") -> None:
    """What the holder lost since its last event: it is told once."""
    for entry in result.get("lost", ()):  # type: ignore[attr-defined]
        path = ("@" if entry["space"] == "resource" else "") + printable(entry["path"])
        call.screen.note(
            f"note: you lost {path} (token {entry['token']}) to {entry['by']}: you had been silent too long"
        )


# --- verbs that only look -----------------------------------------------------------------------------------------


def list_(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.app.look import listing

    mine = bool(values.get("mine"))
    result = listing(call.ctx, call.actor() if mine else call.onlooker(), mine=mine, silent=bool(values.get("all")))
    call.screen.answer(result)
    if not result["initialised"]:
        call.screen.note("note: gitcoord is not set up in this repository")
        return 0
    claims: list[Row] = result["claims"]  # type: ignore[assignment]
    call.screen.say(*call.screen.claim_lines(claims))
    if not call.screen.json:
        if not claims:
            call.screen.note("no claims")
        if result["hidden"]:
            call.screen.hint(f"{result['hidden']} more of agents that fell silent: git claim list --all")
    return 0


def show(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.app.look import around

    item = paths.one(call.ctx.repo, words[0])
    result = around(call.ctx, call.onlooker(), item)
    call.screen.answer(result)
    if not result["initialised"]:
        call.screen.note("note: gitcoord is not set up in this repository")
        return 0
    claims: list[Row] = result["claims"]  # type: ignore[assignment]
    for claim in claims:
        call.screen.say(*_details(call, claim))
    if not claims and not call.screen.json:
        call.screen.note(f"no claim on, above or below {printable(words[0])}")
    return 0


def _details(call: Call, claim: "Row") -> list[str]:
    from gitcoord.hot.render import ago, expiry

    rows = [
        ("agent", f"{claim['agent']} (session {claim['session']})"),
        ("mode", claim["mode"]),
        ("token", claim["token"]),
        ("expires", f"{expiry(claim)} (ttl {format_duration(int(str(claim['ttl_seconds'])))})"),
        ("since", ago(claim["since"])),
        ("reason", claim["reason"]),
        ("task", claim["task"]),
        ("base", claim["base"]),
    ]
    lines = [f"  {name + ':':9}{printable(str(value))}" for name, value in rows if value != ""]
    return [call.screen.paint(printable(str(claim["path"])), "bold"), *lines]


def check(call: Call, values: "Values", words: list[str]) -> int:
    from gitcoord.app.look import check as app_check

    result = app_check(call.ctx, call.actor(), paths.items(call.ctx.repo, words))
    allowed = bool(result["allowed"])
    call.screen.answer(result, ok=allowed)
    if not result["initialised"]:
        call.screen.note("note: gitcoord is not set up in this repository")
        return 0
    if "message" in result:
        call.screen.note(f"no: {printable(str(result['message']))}")
    rows: list[Row] = result["paths"]  # type: ignore[assignment]
    for row in rows:
        _say_verdict(call, row)
    return 0 if allowed else 1


def _say_verdict(call: Call, row: "Row") -> None:
    name = ("@" if row["kind"] == "resource" else "") + printable(str(row["path"]))
    words = {"mine": "yes, yours", "free": "yes, free", "unclaimed": "no, shared and not claimed", "held": "no, held"}
    call.screen.say(f"{name}: {words[str(row['verdict'])]}")
    held: list[Row] = row["held"]  # type: ignore[assignment]
    call.screen.say(*("  " + line for line in call.screen.claim_lines(held)))
    if row["verdict"] == "unclaimed" and not call.screen.json:
        call.screen.hint(f"git claim {name}")
