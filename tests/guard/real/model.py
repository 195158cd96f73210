"""A scripted model on the loopback interface: it speaks the protocols of three vendors and asks for the actions of a script.

A conversation names its script in the person's prompt, `[[script main]]`. Which step comes next follows from the request alone, by the number
of results of actions in it, so a request that a tool repeats gets the same answer. Requests without tools (titles, summaries) and
conversations without a script are answered with one word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from types import TracebackType
from typing import Any, NamedTuple

Record = dict[str, Any]
_SCRIPT = re.compile(r"\[\[script (\w+)\]\]")


class Act(NamedTuple):
    """An action that the model asks for. `text` in place of arguments is for tools that take free text."""

    tool: str
    args: Record
    text: str = ""


# A step that is made when its turn comes: what a test does at that moment, while the conversation is alive, happens in it.
Step = Act | Callable[[], Act]


class Seen(NamedTuple):
    """A request of a tool, whatever its protocol."""

    prompt: str  # the texts that came before the first action: instructions, what hooks added, the person's words
    results: list[str]  # the results of actions so far, as the model reads them, with what hooks added behind
    tools: list[str]
    body: Record


class Model:
    """The server, ended with the `with` statement. `seen` has the longest request of each script."""

    def __init__(self, **scripts: Sequence[Step]) -> None:
        self.scripts: dict[str, list[Step]] = {name: list(steps) for name, steps in scripts.items()}
        self.seen: dict[str, Seen] = {}
        self.paths: list[str] = []
        self._lock = Lock()

    def __enter__(self) -> Model:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"model": self}))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def results(self, script: str = "main") -> list[str]:
        return self.seen[script].results if script in self.seen else []

    def prompt(self, script: str = "main") -> str:
        return self.seen[script].prompt if script in self.seen else ""

    def next(self, seen: Seen) -> tuple[Act | None, int]:
        """The next action and its number; None where the conversation ends."""
        named = _SCRIPT.search(seen.prompt)
        name = named[1] if named else ""
        script = self.scripts.get(name)
        if script is None or not seen.tools:
            return None, 0
        with self._lock:
            if name not in self.seen or len(str(seen.body)) >= len(str(self.seen[name].body)):
                self.seen[name] = seen
        step = len(seen.results)
        if step >= len(script):
            return None, step
        act = script[step]
        if not isinstance(act, Act):
            act = script[step] = act()
        return act, step


class _Handler(BaseHTTPRequestHandler):
    model: Model
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self._send(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        body: Record = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        self.model.paths.append(path)
        if path.endswith(("count_tokens", ":countTokens")):
            self._json({"input_tokens": 10, "totalTokens": 10})
        elif path.endswith("/messages"):
            act, step = self.model.next(_messages(body))
            self._events(_messages_reply(act, step), named=True) if body.get("stream") else self._json(
                _message_of(act, step)
            )
        elif path.endswith("/responses"):
            self._events(_responses_reply(*self.model.next(_responses(body))), named=True)
        elif ":streamGenerateContent" in path:
            self._events([_gemini_reply(*self.model.next(_gemini(body)))], named=False)
        elif ":generateContent" in path:
            self._json(_gemini_reply(*self.model.next(_gemini(body))))
        else:
            self._json({})

    def _json(self, value: Record) -> None:
        self._send(json.dumps(value).encode(), "application/json")

    def _events(self, events: Iterator[Record] | list[Record], *, named: bool) -> None:
        lines = [(f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events]
        self._send("".join(lines).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        return


def _texts(value: object) -> str:
    """All texts in a part of a request, in order."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_texts, value)))
    if isinstance(value, dict):
        return "\n".join(
            filter(
                None, (_texts(value.get(key)) for key in ("text", "content", "output", "parts", "response", "error"))
            )
        )
    return ""


def _add(text: str, prompt: list[str], results: list[str]) -> None:
    """A text belongs to the action before it, or to the prompt."""
    if results:
        results[-1] += f"\n{text}"
    else:
        prompt.append(text)


# --- the Messages API of Anthropic ------------------------------------------------------------------------------------


def _messages(body: Record) -> Seen:
    prompt, results = [_texts(body.get("system"))], []
    for message in body.get("messages", []):
        blocks = message["content"] if isinstance(message["content"], list) else [message["content"]]
        for block in blocks if message["role"] != "assistant" else ():
            if isinstance(block, dict) and block.get("type") == "tool_result":
                results.append(_texts(block))
            else:
                _add(_texts(block), prompt, results)
    tools = [tool.get("name", "") for tool in body.get("tools") or ()]
    return Seen("\n".join(prompt), results, tools, body)


def _message_of(act: Act | None, step: int) -> Record:
    block: Record = {"type": "text", "text": "Done."}
    if act is not None:
        block = {"type": "tool_use", "id": f"toolu_{step:024}", "name": act.tool, "input": act.args}
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [block],
        "stop_reason": "tool_use" if act else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }  # fmt: skip


def _messages_reply(act: Act | None, step: int) -> Iterator[Record]:
    whole = _message_of(act, step)
    block = whole["content"][0]
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    if act is None:
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": {**block, "input": {}}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(act.args)}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


# --- the Responses API of OpenAI --------------------------------------------------------------------------------------


def _responses(body: Record) -> Seen:
    prompt, results = [_texts(body.get("instructions"))], []
    for item in body.get("input", []):
        if str(item.get("type", "")).endswith("_output"):
            results.append(_texts(item.get("output")))
        elif item.get("role") in ("user", "developer"):
            _add(_texts(item), prompt, results)
    further = [tool for item in body.get("input", []) for tool in item.get("tools") or ()]
    tools = [str(tool.get("name", tool.get("type"))) for tool in (*(body.get("tools") or ()), *further)]
    return Seen("\n".join(prompt), results, tools, body)


def _responses_reply(act: Act | None, step: int) -> Iterator[Record]:
    item: Record = {
        "type": "message", "id": f"msg_{step}", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    }  # fmt: skip
    if act is not None and act.text:
        item = {
            "type": "custom_tool_call", "id": f"ctc_{step}", "call_id": f"call_{step}", "name": act.tool,
            "input": act.text, "status": "completed",
        }  # fmt: skip
    elif act is not None:
        item = {
            "type": "function_call", "id": f"fc_{step}", "call_id": f"call_{step}", "name": act.tool,
            "arguments": json.dumps(act.args), "status": "completed",
        }  # fmt: skip
    usage = {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
    }  # fmt: skip
    whole = {"id": f"resp_{step}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": whole}


# --- the API of Gemini ------------------------------------------------------------------------------------------------


def _gemini(body: Record) -> Seen:
    prompt, results = [_texts(body.get("systemInstruction"))], []
    for content in body.get("contents", []):
        for part in content.get("parts", []) if content.get("role") == "user" else ():
            if "functionResponse" in part:
                results.append(_texts(part["functionResponse"]))
            else:
                _add(_texts(part), prompt, results)
    tools = [str(one.get("name")) for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]
    return Seen("\n".join(prompt), results, tools, body)


def _gemini_reply(act: Act | None, step: int) -> Record:
    part: Record = {"text": "Done."}
    if act is not None:
        part = {"functionCall": {"id": f"call-{step}", "name": act.tool, "args": act.args}}
    counts = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    content = {"role": "model", "parts": [part]}
    return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "usageMetadata": counts}
