"""News in the guard's answers: a claim that is the agent's now, who waits for what it holds, and whose work conflicts with its own."""

from __future__ import annotations

from gitcoord.claims.news import news_lines, news_or_none
from gitcoord.git.files import append_file, read_file, remove_file
from gitcoord.ledger.context import Context
from gitcoord.ledger.sessions import Actor


def queue_news(ctx: Context, actor: Actor) -> str:
    """The news that are due, each once."""
    news = news_or_none(ctx, actor) if ctx.may_have_news() else None
    lines = news_lines(ctx, news) if news is not None else []
    if ctx.may_have_warnings():
        from gitcoord.radar.news import news_lines as radar_lines
        from gitcoord.radar.news import radar_news

        lines += radar_lines(radar_news(ctx, actor.agent))
    return "\n".join(f"gitcoord: {line}" for line in lines)


def keep_news(ctx: Context, actor: Actor) -> None:
    """Keep the news that are due for the end of this tool call: the tool takes no text for the agent before it."""
    words = queue_news(ctx, actor)
    if words:
        append_file(ctx.scratch(f"guard/news/{actor.agent}"), f"{words}\n".encode("utf-8", "surrogateescape"))


def kept_news(ctx: Context, agent: str) -> str:
    path = f"{ctx.repo.scratch}/guard/news/{agent}"
    words = read_file(path).decode("utf-8", "surrogateescape").strip()
    remove_file(path)
    return words
