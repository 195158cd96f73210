// The page: asks for what it shows, draws it, and asks again when the stream says that something changed.
// Everything that agents wrote is put into the page as text; there is no markup from data anywhere.
"use strict";

const KEY = "gitcoord-page";
const state = {model: null, seq: 0, last: 0, find: "", pages: {}, rows: {}, oldest: 0, skew: 0, fetched: 0, source: null, live: false, drawn: false, sliding: 0, detail: null, opener: null, plan: null};
const $ = (id) => document.getElementById(id);

// --- texts

// Characters that would hide, reorder or break what stands beside them are shown as what they are.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const plain = (text) => String(text).replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

function cut(text, most) {
  const points = Array.from(plain(text));
  if (points.length <= most) return points.join("");
  const head = Math.ceil(most * 0.6);
  return points.slice(0, head).join("") + "…" + points.slice(head - most + 1).join("");
}

function el(tag, set, ...inner) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(set || {})) {
    if (name === "text") node.textContent = plain(value);
    else if (name === "click") node.addEventListener("click", value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...inner.filter((one) => one !== null && one !== undefined && one !== ""));
  return node;
}
const bdi = (text, most = 300) => el("bdi", {text: cut(text, most)});
const whole = (text) => el("bdi", {text});

function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${s % 3600 >= 60 ? ` ${Math.floor(s % 3600 / 60)}m` : ""}`;
  return `${Math.floor(s / 86400)}d`;
}
const now = () => Date.now() / 1000 + state.skew;
const reference = () => state.model && state.model.past ? state.model.at : now();
const ago = (at) => at ? `${span(reference() - at)} ago` : "";
const moment = (at) => new Date(at * 1000).toLocaleString();

// --- requests

async function ask(path, query, options) {
  const words = new URLSearchParams(query || {}).toString();
  const headers = {"X-Gitcoord-Page": localStorage.getItem(KEY) || ""};
  if (options) headers["Content-Type"] = "application/json";
  const answer = await fetch(`/api/${path}${words ? "?" + words : ""}`, {...options, headers, cache: "no-store"});
  const date = Date.parse(answer.headers.get("date") || "");
  if (date) state.skew = Math.round((date - Date.now()) / 1000);
  const row = await answer.json();
  if (!answer.ok || row.ok === false) throw Object.assign(new Error(row.message || "it failed"), {code: row.error, hints: row.hints || [], status: answer.status});
  return row;
}
const post = (path, row) => ask(path, null, {method: "POST", body: JSON.stringify(row)});

function notice(text) {
  $("notice").hidden = !text;
  $("notice").textContent = plain(text || "");
}
function say(text) {
  $("said").textContent = plain(text);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { $("said").textContent = ""; }, 8000);
}
function failed(error) {
  if (error.status === 401) lost("this browser has not used the link that this page was started with: open that link, and this tab goes on by itself");
  else if (error.status) notice([error.message, ...error.hints].join("; "));
}

// --- lists: the columns of each, and what a row's buttons are

const LISTS = {
  claims: {title: "Claims", none: "nothing is claimed", key: (r) => `${r.path} ${r.agent}`, columns: {
    path: (r) => link("path", r.path, r.units !== 1 && r.kind === "resource" ? `${r.path} x${r.units}` : r.path),
    holder: (r) => link("agent", r.agent),
    mode: (r) => r.mode,
    waiting: (r) => r.waiters ? el("span", {class: "yellow"}, r.waiters.length + ": ", bdi(r.waiters.map((w) => w.agent).join(", "), 80)) : "",
    state: expiry,
    since: (r) => ago(r.since),
    reason: (r) => bdi(r.reason, 200),
    source: (r) => dim(r.source),
  }},
  waits: {title: "Waiting", none: "", key: (r) => `${r.ticket}`, columns: {
    ticket: (r) => `#${r.ticket}`,
    agent: (r) => link("agent", r.agent),
    "waits for": (r) => el("span", null, ...r.paths.slice(0, 3).flatMap((path, i) => [i ? ", " : "", link("path", path)]), r.paths.length > 3 ? ` and ${r.paths.length - 3} more` : ""),
    priority: (r) => r.priority,
    since: (r) => ago(r.since),
    reason: (r) => bdi(r.reason, 200),
    source: (r) => dim(r.source),
    actions: (r) => actions(["raise", r.ticket, "Raise"], ["withdraw", r.ticket, "Withdraw"]),
  }},
  landing: {title: "Landing", none: "", key: (r) => `${r.agent} ${r.place}`, columns: {
    place: (r) => r.place,
    agent: (r) => link("landing", r.agent),
    branch: (r) => bdi(r.reason || r.branch || "", 200),
    since: (r) => ago(r.since || r.at),
    source: (r) => dim(r.source),
  }},
  agents: {title: "Agents", none: "nobody is here", key: (r) => r.agent, columns: {
    agent: (r) => link("agent", r.agent),
    activity: (r) => el("span", {class: {alive: "green", waiting: "yellow", expired: "yellow", killed: "red"}[r.activity] || "dim", text: r.activity}),
    "last seen": (r) => r.silent_seconds === null || r.state !== "open" ? "" : `${span(r.silent_seconds)} ago`,
    since: (r) => ago(r.since),
    parent: (r) => r.parent ? link("agent", r.parent) : "",
    source: (r) => dim(r.source),
    actions: (r) => r.activity === "killed" ? actions(["revive", r.agent, "Revive"]) : actions(["kill", r.agent, "Kill"]),
  }},
  tasks: {title: "Tasks", none: "", key: (r) => r.id, columns: {
    task: (r) => link("task", r.id),
    state: (r) => el("span", {class: {"needs-human": "red", blocked: "yellow", review: "yellow", active: "green"}[r.state] || "", text: r.ready ? "ready" : r.state}),
    owner: (r) => r.owner ? link("agent", r.owner) : "",
    priority: (r) => r.priority,
    title: (r) => bdi(r.title, 200),
    since: (r) => ago(r.since),
    source: (r) => dim(r.source),
    actions: (r) => actions(["raise", r.id, "Priority"], ["reassign", r.id, "Reassign"]),
  }},
  approvals: {title: "Approvals", none: "", key: (r) => r.approval, columns: {
    path: (r) => link("approval", r.approval, r.path),
    id: (r) => r.approval,
    "asked by": (r) => link("agent", r.agent),
    rule: (r) => bdi(r.rule, 80),
    since: (r) => ago(r.at),
    source: (r) => dim(r.source),
    actions: (r) => actions(["approve", r.approval, "Approve"], ["deny", r.approval, "Deny"]),
  }},
  deploys: {title: "Deploys", none: "", key: (r) => r.target, columns: {
    target: (r) => link("path", `@deploy/${r.target}`, r.target),
    commit: (r) => r.commit.slice(0, 12),
    by: (r) => link("agent", r.agent),
    outcome: (r) => el("span", {class: ["ok", "unverified"].includes(r.outcome) ? "green" : "yellow", text: r.outcome}),
    when: (r) => ago(r.at),
    source: (r) => dim(r.source),
  }},
};
const dim = (text) => el("span", {class: "dim"}, bdi(text || "", 100));

function link(kind, subject, words) {
  const opens = (event) => open_detail(kind, subject, event.currentTarget);
  return el("button", {type: "button", class: "link", "data-key": `${kind} ${subject}`, title: plain(subject).slice(0, 2000), click: opens}, bdi(words || subject, 120));
}
function actions(...wanted) {
  if (!state.model || !state.model.acts || state.model.past) return "";
  return el("span", {class: "buttons"}, ...wanted.map(([action, subject, words]) => el("button", {
    type: "button", "data-key": `${action} ${subject}`, "aria-label": plain(`${words} ${subject}`), click: () => open_confirm(action, String(subject)),
  }, words)));
}
function expiry(r) {
  if (r.silent) return el("span", {class: "yellow"}, "expired, free to take");
  if (r.reserved) return el("span", {class: "yellow"}, "reserved");
  if (r.expires_in_seconds === null) return "held";
  const left = Math.min(r.expires_in_seconds, r.ttl_seconds) - (now() - state.fetched);
  return el("span", {class: "green"}, left > 0 ? `${span(left)} left` : "alive");
}

function table(name, rows) {
  const {columns, key} = LISTS[name];
  const used = Object.keys(columns).filter((c) => c !== "actions" || (state.model.acts && !state.model.past));
  const head = el("tr", null, ...used.map((c) => el("th", {scope: "col"}, c)));
  const body = rows.map((row) => el("tr", {"data-row": plain(key(row))}, ...used.map((c) => el("td", {"data-label": c}, columns[c](row)))));
  return el("table", {"aria-labelledby": `${name}-title`}, el("thead", null, head), el("tbody", null, ...body));
}

function section(name, rows, count) {
  const {title, none} = LISTS[name];
  if (!count && !none) return null;
  const more = rows.length < count ? el("p", {class: "more"}, el("button", {type: "button", "data-key": `more ${name}`, click: () => more_of(name)}, `Show more of ${count - rows.length} further rows`)) : null;
  return el("section", {id: name, "aria-labelledby": `${name}-title`},
    el("h2", {id: `${name}-title`}, `${title}: ${count || "none"}`), count ? table(name, rows) : el("p", {class: "dim"}, none), more);
}

function landing_rows(landing) {
  const turns = landing.landing.map((r) => ({...r, place: "now"}));
  const open = landing.open.filter((r) => !turns.some((t) => t.agent === r.agent)).map((r) => ({...r, place: "interrupted"}));
  return [...turns, ...open, ...landing.waiting.map((r) => ({...r, place: String(r.position)}))];
}

// --- drawing

function keep_focus(draw) {
  const key = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : "";
  draw();
  if (!key || (document.activeElement && document.activeElement.dataset && document.activeElement.dataset.key === key)) return;
  const found = [...document.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key);
  if (found) found.focus({preventScroll: true});
}

function draw() {
  const model = state.model;
  if (!model) return;
  document.title = `${model.needs_you.length ? `(${model.counts.needs_you}) ` : ""}${cut(model.repository, 60)} · gitcoord`;
  $("repository").textContent = cut(model.repository, 80);
  draw_needs(model);
  $("past").hidden = !model.past;
  $("past-words").textContent = model.past ? `You see the state after event ${model.seq}, ${moment(model.at)}, by the ledger alone: heartbeats are not kept.` : "";
  const halt = $("halt");
  halt.hidden = !model.acts || model.past;
  halt.textContent = model.halted ? "End the halt" : "Halt everything";
  notice([model.trouble, model.offline, ...model.warnings].filter(Boolean).join("; "));
  const rows = {...state.rows, landing: {rows: landing_rows(model.landing), count: landing_rows(model.landing).length}};
  keep_focus(() => $("lists").replaceChildren(...Object.keys(LISTS).map((name) => section(name, rows[name].rows, rows[name].count)).filter(Boolean)));
  if (!state.drawn) performance.mark("gitcoord-drawn");
  state.drawn = true;
  connected();
  const slider = $("slider");
  state.last = model.past ? Math.max(state.last, model.seq) : model.seq;
  slider.max = state.last;
  slider.disabled = state.last < 2;
  if (state.sliding) return;
  slider.value = model.past ? model.seq : state.last;
  $("slider-seq").textContent = model.past ? model.seq : `${state.last} (now)`;
}

const ABOUT = {halt: "agent", task: "task", guard: "agent", deadlock: "agent", wait: "path", expired: "path", approval: "path", expiring: "agent", slow: "path", "old-copy": "path", deploy: "path"};
function draw_needs(model) {
  const title = $("needs-title");
  const many = model.counts.needs_you;
  const words = many ? `${many} ${many === 1 ? "thing needs" : "things need"} you` : "nothing needs you";
  if (title.textContent !== words) title.textContent = words;
  title.className = many ? "pressing" : "calm";
  const item = (other) => (need) => el("li", {class: other ? "other" : undefined},
    ABOUT[need.kind] ? link(ABOUT[need.kind], need.subject, need.kind) : el("strong", {text: need.kind}), " ", bdi(need.message, 500), " ",
    dim(`[${need.source}${need.since ? ", " + ago(need.since) : ""}]`), need.help ? el("div", {class: "dim"}, bdi(need.help, 300)) : null);
  const others = model.needs_person.map(item(true));
  if (others.length) others.unshift(el("li", {class: "other"}, el("strong", null, `needs a person: ${model.counts.needs_person}`)));
  keep_focus(() => $("needs-list").replaceChildren(...model.needs_you.map(item(false)), ...others));
  $("early").hidden = !model.early_warnings.length;
  $("early-title").textContent = `Early warnings: ${model.counts.early_warnings}`;
  keep_focus(() => $("early-list").replaceChildren(...model.early_warnings.map(item(true))));
}

const where = () => state.seq ? {seq: state.seq} : {};
async function refresh() {
  if (refresh.running) { refresh.again = true; return; }
  refresh.running = true;
  try {
    const model = await ask("overview", where());
    const rows = {};
    for (const name of Object.keys(LISTS)) if (name !== "landing") rows[name] = await rows_of(name, model);
    state.model = model;
    state.rows = rows;
    state.fetched = now();
    draw();
    if (state.detail) await show_detail(false);
  } catch (error) {
    failed(error);
  } finally {
    refresh.running = false;
    if (refresh.again) { refresh.again = false; refresh(); }
  }
}
async function rows_of(name, model) {
  const pages = state.pages[name] || 1;
  if (!state.find && pages === 1) return {rows: model[name] || [], count: model.counts[name]};
  const rows = [];
  let count = 0;
  for (let page = 0; page < pages; page++) {
    const found = await ask("rows", {list: name, offset: page * model.page, find: state.find, ...where()});
    rows.push(...found.rows);
    count = found.count;
  }
  return {rows, count};
}
async function more_of(name) {
  state.pages[name] = (state.pages[name] || 1) + 1;
  await refresh();
}

// --- timeline and time travel

function event_line(event) {
  const back = el("button", {type: "button", class: "link", "data-key": `event ${event.seq}`, "aria-label": `Show the state after event ${event.seq}`, click: () => travel(event.seq)}, `${event.seq}`);
  return el("li", {"data-event": event.seq}, back, " ", el("time", {class: "dim", datetime: new Date(event.at * 1000).toISOString(), title: moment(event.at)}, ago(event.at)), " ", bdi(event.words, 400));
}
async function load_timeline(before) {
  const found = await ask("timeline", {before: before || 0});
  const lines = found.events.map(event_line);
  if (before) $("events").append(...lines);
  else $("events").replaceChildren(...lines);
  state.oldest = found.events.length ? found.events[found.events.length - 1].seq : 0;
  $("older").hidden = !found.more;
}
async function travel(seq) {
  state.seq = seq;
  await refresh();
}

// --- contention

async function measure() {
  const found = await ask("contention", {of: "7d"});
  const most = Math.max(1, ...found.paths.map((r) => r.waits.total));
  const row = (r) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "bar");
    svg.setAttribute("aria-hidden", "true");
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("width", `${100 * r.waits.total / most}%`);
    rect.setAttribute("height", "100%");
    svg.append(rect);
    const cells = {path: link("path", r.path), waited: el("span", null, span(r.waits.total), svg), waits: r.waits.count, p95: span(r.waits.p95), grants: r.grants, "held p50": span(r.holds.p50), refused: r.refusals, expired: r.expiries};
    return el("tr", null, ...Object.entries(cells).map(([name, value]) => el("td", {"data-label": name, class: name === "waited" ? "chart" : undefined}, value)));
  };
  const head = ["path", "waited", "waits", "p95", "grants", "held p50", "refused", "expired"];
  const body = found.paths.length ? [el("table", {"aria-labelledby": "contention-title"}, el("thead", null, el("tr", null, ...head.map((c) => el("th", {scope: "col"}, c)))), el("tbody", null, ...found.paths.map(row)))] : [el("p", {class: "dim"}, "nobody claimed or waited for anything in this time")];
  for (const hot of found.hot) body.push(el("p", null, "hot: ", link("path", hot.path), ` (${plain(hot.words)}): `, bdi(hot.help.join("; "), 500)));
  body.push(el("p", {class: "more"}, el("button", {type: "button", click: () => measure().catch(failed)}, "Measure again")));
  $("contention-body").replaceChildren(...body);
}

// --- details

const DETAILS = {
  path: (d) => [
    ...part("Held by", d.claims, (c) => el("li", null, link("agent", c.agent), ` ${c.mode}, `, link("path", c.path), ` since ${ago(c.since)} `, whole(c.reason))),
    ...part("Waiting", d.waits, (w) => el("li", null, link("agent", w.agent), ` #${w.ticket} ${w.priority}, since ${ago(w.since)} `, whole(w.reason), " ", actions(["raise", w.ticket, "Raise"], ["withdraw", w.ticket, "Withdraw"]))),
    ...part("Notes", d.notes, (n) => el("li", null, link("agent", n.agent), " ", whole(n.text))),
    ...part("Story", [...d.story].reverse(), story_line, "nothing is on record about it"),
  ],
  agent: (d) => [
    el("p", null, `${d.agent.activity}, session ${d.agent.session}, since ${ago(d.agent.since)} `, dim(`[${d.agent.source}]`), " ", actions(d.agent.activity === "killed" ? ["revive", d.agent.agent, "Revive"] : ["kill", d.agent.agent, "Kill"])),
    ...part("Holds", d.claims, (c) => el("li", null, link("path", c.path), ` ${c.mode} `, whole(c.reason))),
    ...part("Waits for", d.waits, (w) => el("li", null, `#${w.ticket} `, ...w.paths.slice(0, 20).map((path) => link("path", path)))),
    ...part("Tasks", d.tasks, (t) => el("li", null, link("task", t.id), ` ${t.state} `, whole(t.title))),
    ...part("Last events", d.story, event_line, "nothing is on record about it"),
  ],
  task: (d) => [
    el("p", null, whole(d.task.title)),
    el("p", null, `${d.task.state}, ${d.task.priority}`, d.task.owner ? ", " : "", d.task.owner ? link("agent", d.task.owner) : "", " ", actions(["raise", d.task.id, "Priority"], ["reassign", d.task.id, "Reassign"])),
    d.task.reason ? el("p", null, "reason: ", whole(d.task.reason)) : null,
    d.task.body ? el("pre", {text: d.task.body, tabindex: 0}) : null,
    ...part("Claims", d.claims, (c) => el("li", null, link("path", c.path), " ", link("agent", c.agent))),
    ...part("Story", [...d.story].reverse(), story_line),
  ],
  landing: (d) => [
    el("p", null, "onto ", whole(d.trunk), ", by ", link("agent", d.agent)),
    ...part("Has the turn", d.landing, (r) => el("li", null, whole(r.reason), ` since ${ago(r.since)}`)),
    ...part("Waits for a turn", d.waiting, (r) => el("li", null, `${r.position}. `, whole(r.reason), ` since ${ago(r.since)}`)),
    ...part("Under way", d.open, (r) => el("li", null, whole(r.branch), ` ${r.how} `, ...r.checks.map((c) => el("div", null, whole(c.command), ` exit ${c.code}, ${span(c.seconds)}`)))),
    ...part("Failed", d.failed, (r) => el("li", null, whole(r.branch), " ", whole(r.message), r.output ? el("pre", {text: r.output, tabindex: 0}) : null)),
    ...part("Landed before", d.story, event_line),
  ],
  approval: (d) => [
    el("p", null, `${d.approval.id}, ${d.approval.state}, asked by `, link("agent", d.approval.agent), ` ${ago(d.approval.at)}, rule `, whole(d.approval.rule), " ", d.approval.state === "open" ? actions(["approve", d.approval.id, "Approve"], ["deny", d.approval.id, "Deny"]) : ""),
    el("p", null, link("path", d.approval.path)),
    el("pre", {text: d.diff, tabindex: 0, "aria-label": "the change"}),
  ],
};
const story_line = (row) => el("li", null, el("span", {class: "dim"}, `${row.seq} ${ago(row.at)} `), whole(row.words));
function part(title, rows, line, none) {
  const given = rows || [];
  if (!given.length && !none) return [];
  return [el("h3", null, title), given.length ? el("ul", {class: "events"}, ...given.map(line)) : el("p", {class: "dim"}, none)];
}
function open_detail(kind, subject, opener) {
  if (!state.detail) state.opener = opener;
  state.detail = {kind, subject: String(subject)};
  show_detail(true).catch(failed);
}
async function show_detail(fresh) {
  const {kind, subject} = state.detail;
  let body;
  try {
    body = DETAILS[kind](await ask(kind, {of: subject}));
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    body = [el("p", {text: error.message})];
  }
  if (!state.detail || state.detail.kind !== kind || state.detail.subject !== subject) return;
  keep_focus(() => $("detail-body").replaceChildren(...body.filter(Boolean)));
  $("detail-title").replaceChildren(`${kind} `, whole(subject));
  $("detail").hidden = false;
  if (fresh) $("detail-title").focus();
}
function close_detail() {
  if (!state.detail) return;
  $("detail").hidden = true;
  state.detail = null;
  const key = state.opener && state.opener.dataset.key;
  const found = state.opener && state.opener.isConnected ? state.opener : [...document.querySelectorAll("main [data-key]")].find((node) => node.dataset.key === key);
  (found || $("needs")).focus();
}

// --- actions: shown in words first, done only as they were shown

const VALUES = {
  raise: () => el("select", null, ...["critical", "high", "normal", "low"].map((name) => el("option", {selected: name === "high"}, name))),
  reassign: () => el("input", {type: "text", list: "agents-known", maxlength: 64, autocomplete: "off", spellcheck: "false"}),
};
async function open_confirm(action, subject) {
  state.plan = {action, subject, value: "", seal: ""};
  const field = VALUES[action] && VALUES[action]();
  const body = [];
  if (field) {
    body.push(el("label", {class: "field"}, action === "raise" ? "Priority " : "To the agent ", field));
    if (action === "reassign") body.push(el("datalist", {id: "agents-known"}, ...state.model.agents.slice(0, 50).map((a) => el("option", {value: a.agent}))));
    field.addEventListener("input", () => { clearTimeout(field.timer); field.timer = setTimeout(() => plan(field.value), 200); });
  }
  body.push(el("div", {id: "confirm-plan"}));
  $("confirm-title").textContent = `${action} ${cut(subject, 80)}`;
  $("confirm-error").textContent = "";
  $("confirm-yes").disabled = true;
  $("confirm-body").replaceChildren(...body);
  $("confirm").showModal();
  if (!field || field.value) await plan(field ? field.value : "");
  (field || $("confirm-no")).focus();
}
async function plan(value) {
  const wanted = state.plan;
  wanted.value = value;
  wanted.seal = "";
  $("confirm-yes").disabled = true;
  try {
    const found = await ask("plan", {action: wanted.action, subject: wanted.subject, value});
    if (state.plan !== wanted || wanted.value !== value) return;
    wanted.seal = found.seal;
    wanted.title = found.title;
    $("confirm-title").replaceChildren(whole(found.title));
    const reason = found.takes_reason ? el("label", {class: "field"}, "Why, for the record ", el("input", {id: "confirm-reason", type: "text", maxlength: 1000, autocomplete: "off"})) : null;
    $("confirm-plan").replaceChildren(el("ul", null, ...found.lines.map((line) => el("li", null, whole(line)))), found.diff ? el("pre", {text: found.diff, tabindex: 0, "aria-label": "the change"}) : "", el("p", {class: "dim"}, `On record as ${plain(state.model.person)}.`), reason || "");
    $("confirm-error").textContent = "";
    $("confirm-yes").disabled = false;
  } catch (error) {
    $("confirm-plan").replaceChildren();
    $("confirm-error").textContent = plain([error.message, ...(error.hints || [])].join("; "));
  }
}
async function act() {
  const reason = $("confirm-reason") ? $("confirm-reason").value : "";
  const wanted = state.plan;
  const {action, subject, value, seal} = wanted;
  $("confirm-yes").disabled = true;
  try {
    const done = await post("act", {action, subject, value, seal, reason});
    if (state.plan === wanted) $("confirm").close();
    say(`done: ${wanted.title}${done.notes ? "; " + done.notes.join("; ") : ""}`);
  } catch (error) {
    const words = [error.message, ...(error.hints || [])].join("; ");
    if (state.plan !== wanted) return;
    if (error.code === "changed") await plan(value);
    $("confirm-error").textContent = plain(words);
  }
  refresh();
}

// --- the stream

function lost(words) {
  state.live = false;
  $("connection").textContent = plain(words);
  $("connection").className = "lost";
}
function connected() {
  if (!state.live || !state.model) return;
  $("connection").textContent = state.model.acts ? "live" : "live, read-only";
  $("connection").className = "";
}
function connect() {
  if (state.source) state.source.close();
  const source = state.source = new EventSource(`/api/stream?key=${encodeURIComponent(localStorage.getItem(KEY) || "")}`);
  source.addEventListener("change", (message) => {
    const told = JSON.parse(message.data);
    state.live = true;
    connected();
    if (told.gap || !$("events").childElementCount) load_timeline(0).catch(failed);
    else if (told.events.length) {
      $("events").prepend(...told.events.slice().reverse().map(event_line));
      while ($("events").childElementCount > 1000) $("events").lastElementChild.remove();
    }
    $("slider").max = state.last = Math.max(state.last, told.seq);
    if (!state.seq) refresh();
  });
  source.onerror = () => {
    if (source !== state.source) return;
    lost("connection lost, trying again");
    if (source.readyState !== EventSource.CLOSED) return;
    source.close();
    ask("overview").catch(failed); // says whether the link is what is missing
    setTimeout(begin, 2000);
  };
}
function begin() {
  refresh();
  load_timeline(0).catch(failed);
  connect();
}

async function start() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key");
  if (given) {
    history.replaceState(null, "", "/");
    try {
      localStorage.setItem(KEY, (await post("session", {key: given})).key);
    } catch (error) {
      notice(error.message);
    }
  }
  $("halt").addEventListener("click", () => open_confirm(state.model.halted ? "resume" : "halt", ""));
  $("now").addEventListener("click", () => travel(0).then(() => $("needs").focus()));
  $("older").addEventListener("click", () => load_timeline(state.oldest).catch(failed));
  $("measure").addEventListener("click", () => measure().catch(failed));
  $("detail-close").addEventListener("click", close_detail);
  $("confirm-no").addEventListener("click", () => $("confirm").close());
  $("confirm-yes").addEventListener("click", act);
  const later = (wait, what) => { let timer; return () => { clearTimeout(timer); timer = setTimeout(what, wait); }; };
  $("find").addEventListener("input", later(200, () => { state.find = $("find").value; state.pages = {}; refresh(); }));
  const slide = later(150, () => {
    const wanted = state.sliding;
    state.sliding = 0;
    travel(wanted >= state.last ? 0 : wanted);
  });
  $("slider").addEventListener("input", () => {
    state.sliding = Number($("slider").value);
    $("slider-seq").textContent = state.sliding;
    slide();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("confirm").open) close_detail(); });
  setInterval(() => { if (!document.hidden && state.source && state.source.readyState === 1) refresh(); }, 60000);
  begin();
}
start();
