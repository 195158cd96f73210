// What the page knows, and its requests to the server.
import {$, clock, plain} from "/texts.js";

export const KEY = "gitcoord-page";
export const state = {model: null, rows: {}, find: "", pages: {}, seq: 0, last: 0, live: false};

export async function ask(path, query, options) {
  const words = new URLSearchParams(query || {}).toString();
  const headers = {"X-Gitcoord-Page": localStorage.getItem(KEY) || ""};
  if (options) headers["Content-Type"] = "application/json";
  const answer = await fetch(`/api/${path}${words ? "?" + words : ""}`, {...options, headers, cache: "no-store"});
  const date = Date.parse(answer.headers.get("date") || "");
  if (date) clock.skew = Math.round((date - Date.now()) / 1000);
  const row = await answer.json();
  if (!answer.ok || row.ok === false) throw Object.assign(new Error(row.message || "it failed"), {code: row.error, hints: row.hints || [], status: answer.status});
  return row;
}
export const post = (path, row) => ask(path, null, {method: "POST", body: JSON.stringify(row)});
export const wordsOf = (error) => [error.message, ...(error.hints || [])].join("; ");

export function notice(text) {
  $("notice").hidden = !text;
  $("notice").textContent = plain(text || "");
}
export function lost(words) {
  state.live = false;
  $("connection").textContent = plain(words);
  $("connection").className = "lost";
}
// An error without a status is a lost connection, which the stream tells of.
export function failed(error) {
  if (error.status === 401) lost("this browser has not used the link that this page was started with: open that link, and this tab goes on by itself");
  else if (error.status) notice(wordsOf(error));
}
