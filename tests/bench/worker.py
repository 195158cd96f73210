"""One of many processes with the library API: `python -m tests.bench.worker <repository> <agent> <path>`.

Says "ready", then for each line "<seconds>" on its input claims and releases its path for so long and answers with the
number of pairs, the number of failures and the last failure's words in one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from gitcoord.base.errors import GitcoordError
from tests.bench.client import Client


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
