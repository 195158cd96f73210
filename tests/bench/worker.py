"""One of many processes with the library API: `python -m tests.bench.worker <repository> <agent> <path>`.

Says "ready", then for each line "<seconds>" on its input claims and releases its path for so long and answers with the
number of pairs, the number of failures and the last failure's words in one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from gitcoord.base.errors import GitcoordError
from gitcoord.claims.model import Item
from gitcoord.claims.service import release, take
from gitcoord.claims.take import Take
from gitcoord.ledger.sessions import Actor
from gitcoord.world.open import open_repository


class Client:
    """Works in its repository as one agent. Changes the current directory, as git finds the repository by it."""

    def __init__(self, where: Path, agent: str, env: Mapping[str, str]) -> None:
        self._where = where
        self._actor = Actor(agent)
        self.enter()
        self._ctx = open_repository({os.fsencode(k): os.fsencode(v) for k, v in env.items()}, writing=True)

    def enter(self) -> None:
        os.chdir(self._where)

    def pair(self, path: str) -> None:
        """Claim and release once; raises where either is refused or fails."""
        items = (Item("path", path),)
        take(self._ctx, Take(self._actor, items))
        release(self._ctx, self._actor, items)

    def close(self) -> None:
        self._ctx.store.close()


def work(client: Client, path: str, seconds: float) -> dict[str, object]:
    end = time.monotonic() + seconds
    done = failed = 0
    words = ""
    while time.monotonic() < end:
        try:
            client.pair(path)
        except (GitcoordError, OSError) as error:
            failed += 1
            words = f"{type(error).__name__}: {error}"
        else:
            done += time.monotonic() < end
    return {"done": done, "failed": failed, "words": words}


def main(where: str, agent: str, path: str) -> None:
    client = Client(Path(where), agent, os.environ)
    client.pair(path)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(work(client, path, float(line))), flush=True)
    client.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
