"""The account that pushes, and the agents that it may act for.

`<repository>/gitcoord/accounts`, in git-config syntax, belongs to the server's administrator:

    [account "alice"]
        agent = alice          ; may be given several times
        agent = alice.*        ; a name, or a beginning followed by '*'
        person = true          ; the names without '*' are a person's

Without that file every name that a push gives is believed ("open"): then the gate stops mistakes, not lies.
"""

from __future__ import annotations

from gitcoord.base.errors import CouldNotJudge, UsageError, refused
from gitcoord.base.names import check_agent, printable
from gitcoord.git.commands.settings import list_settings
from gitcoord.git.config import parse_settings
from gitcoord.git.files import exists
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor
from gitcoord.startup.annotations import Iterable
from gitcoord.startup.namedtuple import NamedTuple

FILE = "accounts"
# A transport that names an account does so in one of these. Which one is believed is a setting, because a login can set
# all variables that the transport does not set.
VARIABLES = (
    "GITCOORD_ACCOUNT", "GL_USER", "GL_USERNAME", "GITEA_PUSHER_NAME", "GITHUB_USER_LOGIN", "REMOTE_USER",
)  # fmt: skip
DEFAULT_VARIABLE = "GITCOORD_ACCOUNT"
SETTING = "gitcoord.server.account"
NOBODY = "nobody"


class Account(NamedTuple):
    name: str
    agents: tuple[str, ...] = ()
    person: bool = False

    def may(self, agent: str) -> bool:
        return any(_fits(pattern, agent) for pattern in self.agents)

    @property
    def own_names(self) -> list[str]:
        return [pattern for pattern in self.agents if not pattern.endswith("*")]


def _fits(pattern: str, agent: str) -> bool:
    return agent.startswith(pattern[:-1]) if pattern.endswith("*") else agent == pattern


class Pusher:
    """The account of one push, and the agent that its push option names. Without an account every name is accepted."""

    def __init__(self, account: Account | None, option: str) -> None:
        self.account = account
        self.option = option
        if option:
            self.require(_agent(option), f"the push option names '{printable(option[:80])}'")

    @property
    def name(self) -> str:
        return self.account.name if self.account is not None else ""

    def may(self, agent: str) -> bool:
        return self.account is None or self.account.may(agent)

    def require(self, agent: str, what: str) -> None:
        """Raise Refused unless this account may act for the agent."""
        if self.account is None or self.account.may(agent):
            return
        raise refused(
            "identity",
            f"{what}, but the account '{printable(self.name)}' may not act for '{agent}'",
            f"its agents are {', '.join(self.account.agents[:8]) or 'none'}: GITCOORD_AGENT=<name>",
            "the server's administrator maps accounts to agents",
        )

    def actor(self, agent: str) -> Actor:
        """The agent as an actor. Without accounts, the client says who is a person."""
        if self.account is None:
            return Actor(agent, person=True, unchecked=True)
        return Actor(agent, person=self.account.person and agent in self.account.own_names)

    def coder(self, trailers: Iterable[str]) -> Actor:
        """The agent that pushes code: named by option, else the account's only name, else the one agent that the commits name."""
        if self.option:
            return self._coder(self.option)
        if self.account is not None and (self.account.person or len(self.account.agents) == 1):
            names = self.account.own_names
            if names:
                return self._coder(names[0])
        named = list(dict.fromkeys(name for name in trailers if name and self.may(name)))
        if len(named) == 1 or (named and self.account is None):
            return self._coder(named[-1])
        if self.account is None:
            return Actor(NOBODY)
        raise refused(
            "identity",
            f"the account '{printable(self.name)}' acts for several agents: which one pushes?",
            "name it: git push -o agent=<name>",
            "or in the commits: Agent: <name>",
        )

    def _coder(self, agent: str) -> Actor:
        """The agent as the actor of a push of code. Without accounts nobody counts as a person, which is stricter."""
        return Actor(agent) if self.account is None else self.actor(agent)


def _agent(name: str) -> str:
    try:
        return check_agent(name)
    except UsageError as error:
        raise refused("identity", f"push option agent: {error.message}", *error.hints) from None


def read_accounts(ctx: Context) -> dict[str, Account] | None:
    """The accounts; None where names are trusted. Raises where the file exists and cannot be read."""
    path = f"{ctx.repo.scratch}/{FILE}"
    if not exists(path):
        return None
    answer = list_settings(ctx.repo.env, file=path).require("the server's accounts cannot be read")
    return parse_accounts(parse_settings(answer.out))


def parse_accounts(pairs: list[tuple[str, str]]) -> dict[str, Account]:
    found: dict[str, Account] = {}
    for key, value in pairs:
        section, _, rest = key.partition(".")
        name, _, setting = rest.rpartition(".")
        if section != "account" or not name:
            continue
        account = found.get(name, Account(name))
        if setting == "agent":
            account = account._replace(agents=(*account.agents, _pattern(name, value)))
        elif setting == "person":
            if value.lower() not in ("true", "false", "yes", "no", "on", "off", "1", "0"):
                raise CouldNotJudge(f"the server's accounts: account.{printable(name)}.person is not true or false")
            account = account._replace(person=value.lower() in ("true", "yes", "on", "1"))
        else:
            raise CouldNotJudge(f"the server's accounts: {printable(key)} is not known")
        found[name] = account
    return found


def _pattern(name: str, value: str) -> str:
    try:
        return value if value == "*" else check_agent(value.removesuffix("*").rstrip(".")) and value
    except UsageError as error:
        raise CouldNotJudge(f"the server's accounts: account.{printable(name)}.agent: {error.message}") from None


def variable(ctx: Context) -> str:
    """The environment variable that names the account."""
    wish = ctx.settings.get(SETTING).removeprefix("env:")
    if wish and not wish.replace("_", "").isalnum():
        raise CouldNotJudge(f"{SETTING} is no name of a variable: '{printable(wish)}'")
    return wish or DEFAULT_VARIABLE


def find_pusher(ctx: Context, environ: dict[str, str], option: str) -> Pusher:
    """The pusher. Raises Refused for an account that the file does not list."""
    accounts = read_accounts(ctx)
    if accounts is None:
        return Pusher(None, option)
    named = environ.get(variable(ctx), "")
    if not named:
        raise refused(
            "identity",
            f"the server cannot tell who pushes: {variable(ctx)} is not set",
            f"the server's administrator names the variable that holds the account: git config {SETTING} <variable>",
        )
    if named not in accounts:
        raise refused("identity", f"the account '{printable(named[:80])}' is not known to gitcoord here")
    return Pusher(accounts[named], option)
