// The lists of the page: the columns of each, and the buttons of its rows.
import {state} from "/requests.js";
import {bdi, clock, dim, el, link, links, now, plain, source, span, when} from "/texts.js";

export const LISTS = {
  claims: {title: "Claims", none: "Nothing is claimed.", key: (r) => `${r.path} ${r.agent}`, columns: {
    path: (r) => link("path", r.path, r.units !== 1 && r.kind === "resource" ? `${r.path} x${r.units}` : r.path),
    holder: (r) => link("agent", r.agent),
    mode: (r) => r.mode === "write" ? "" : r.mode,
    "waited for by": (r) => r.waiters ? el("span", {class: "yellow"}, r.waiters.length > 1 ? `${r.waiters.length}: ` : "", bdi(r.waiters.map((w) => w.agent).join(", "), 80)) : "",
    state: expiry,
    since: (r) => when(r.since),
    reason: (r) => bdi(r.reason, 200),
    source: (r) => source(r.source),
  }},
  waits: {title: "Waiting", none: "", key: (r) => `${r.ticket}`, columns: {
    agent: (r) => link("agent", r.agent),
    "waits for": (r) => links("path", r.paths),
    "held by": (r) => links("agent", holders(r.ticket)),
    ticket: (r) => `#${r.ticket}`,
    priority: (r) => r.priority,
    since: (r) => when(r.since),
    reason: (r) => bdi(r.reason, 200),
    source: (r) => source(r.source),
    actions: (r) => actions(["raise", r.ticket, "Raise"], ["withdraw", r.ticket, "Withdraw"]),
  }},
  landing: {title: "Landing", none: "", key: (r) => `${r.agent} ${r.place}`, columns: {
    branch: (r) => link("landing", r.agent, r.reason || r.branch || r.agent),
    agent: (r) => link("agent", r.agent),
    place: (r) => el("span", {class: {now: "green", interrupted: "yellow"}[r.place] || ""}, r.place),
    since: (r) => when(r.since || r.at),
    source: (r) => source(r.source),
  }},
  agents: {title: "Agents", none: "No agent is here.", key: (r) => r.agent, columns: {
    agent: (r) => link("agent", r.agent),
    activity: (r) => el("span", {class: {alive: "green", waiting: "yellow", expired: "yellow", killed: "red"}[r.activity] || "dim", text: r.activity}),
    holds: (r) => r.holds.count ? el("span", null, links("path", r.holds.paths), r.holds.count > r.holds.paths.length ? ` and ${r.holds.count - r.holds.paths.length} more` : "") : "",
    task: (r) => links("task", r.tasks),
    "last seen": (r) => r.silent_seconds === null || r.state !== "open" || clock.past ? "" : when(state.fetched - r.silent_seconds),
    since: (r) => when(r.since),
    parent: (r) => r.parent ? link("agent", r.parent) : "",
    source: (r) => source(r.source),
    actions: (r) => actions(r.activity === "killed" ? ["revive", r.agent, "Revive"] : ["kill", r.agent, "Kill"]),
  }},
  tasks: {title: "Tasks", none: "", key: (r) => r.id, columns: {
    task: (r) => el("span", null, link("task", r.id, r.title, 200), " ", dim(r.id)),
    state: (r) => el("span", {class: {"needs-human": "red", blocked: "yellow", review: "yellow", active: "green"}[r.state] || "", text: r.ready ? "ready" : r.state}),
    owner: (r) => r.owner ? link("agent", r.owner) : "",
    priority: (r) => r.priority,
    since: (r) => when(r.since),
    source: (r) => source(r.source),
    actions: (r) => actions(["raise", r.id, "Priority"], ["reassign", r.id, "Reassign"]),
  }},
  approvals: {title: "Approvals", none: "", key: (r) => r.approval, columns: {
    path: (r) => link("approval", r.approval, r.path),
    "asked by": (r) => link("agent", r.agent),
    id: (r) => r.approval,
    rule: (r) => bdi(r.rule, 80),
    since: (r) => when(r.at),
    source: (r) => source(r.source),
    actions: (r) => actions(["approve", r.approval, "Approve"], ["deny", r.approval, "Deny"]),
  }},
  deploys: {title: "Deploys", none: "", key: (r) => r.target, columns: {
    target: (r) => link("path", `@deploy/${r.target}`, r.target),
    by: (r) => link("agent", r.agent),
    commit: (r) => r.commit.slice(0, 12),
    outcome: (r) => el("span", {class: r.succeeded ? "green" : "yellow", text: r.outcome}),
    since: (r) => when(r.at),
    source: (r) => source(r.source),
  }},
};

const holders = (ticket) => [...new Set(state.model.claims.filter((c) => (c.waiters || []).some((w) => w.ticket === ticket)).map((c) => c.agent))];

function expiry(r) {
  if (r.silent) return el("span", {class: "yellow"}, "expired, free to take");
  if (r.reserved) return el("span", {class: "yellow"}, "reserved");
  if (r.expires_in_seconds === null) return "held";
  const left = Math.min(r.expires_in_seconds, r.ttl_seconds) - (now() - state.fetched);
  return el("span", {class: "green"}, left > 0 ? `${span(left)} left` : "alive");
}

// Buttons of a person; none where the page only shows, or shows the past.
export const mayAct = () => state.model && state.model.acts && !state.model.past;
export function actions(...wanted) {
  if (!mayAct()) return "";
  return el("span", {class: "buttons"}, ...wanted.map(([action, subject, words]) => el("button", {type: "button", "data-key": `${action} ${subject}`, "aria-label": plain(`${words} ${subject}`)}, words)));
}

// Columns in which no row has anything are left out.
function table(name, rows) {
  const {columns, key} = LISTS[name];
  const cells = rows.map((row) => Object.entries(columns).map(([c, draw]) => [c, draw(row)]));
  const used = Object.keys(columns).map((_, at) => cells.some((row) => row[at][1] !== "" && (row[at][1].textContent ?? "x") !== ""));
  const head = el("tr", null, ...Object.keys(columns).filter((_, at) => used[at]).map((c) => el("th", {scope: "col"}, c)));
  const body = cells.map((row, i) => el("tr", {"data-row": plain(key(rows[i]))}, ...row.filter((_, at) => used[at]).map(([c, value]) => el("td", {"data-label": c}, value))));
  return el("table", {"aria-labelledby": `${name}-title`}, el("thead", null, head), el("tbody", null, ...body));
}

function section(name, rows, count, summary) {
  const {title, none} = LISTS[name];
  if (!count && (!none || state.find)) return null;
  const more = rows.length < count ? el("p", {class: "more"}, el("button", {type: "button", "data-key": `more ${name}`}, `Show more of ${count - rows.length} further rows`)) : null;
  return el("section", {id: name, "aria-labelledby": `${name}-title`},
    el("h2", {id: `${name}-title`}, `${title}: ${count || "none"}`, summary ? el("span", {class: "dim"}, ` ${summary}`) : ""), count ? table(name, rows) : el("p", {class: "dim"}, none), more);
}

export function sections(model) {
  const turns = landingRows(model.landing);
  const rows = {...state.rows, landing: {rows: turns, count: turns.length}};
  const summaries = {agents: Object.entries(model.activities).map(([name, count]) => `${count} ${name}`).join(", "), landing: `on ${plain(model.landing.trunk)}` + (model.landing.check_seconds ? `, the last check took ${model.landing.check_seconds}s` : "")};
  return Object.keys(LISTS).map((name) => section(name, rows[name].rows, rows[name].count, summaries[name])).filter(Boolean);
}

function landingRows(landing) {
  const turns = landing.landing.map((r) => ({...r, place: "now"}));
  const open = landing.open.filter((r) => !turns.some((t) => t.agent === r.agent)).map((r) => ({...r, place: "interrupted"}));
  const found = [...turns, ...open, ...landing.waiting.map((r) => ({...r, place: String(r.position)}))];
  const wanted = state.find.toLowerCase();
  return found.filter((r) => [r.agent, r.reason, r.branch].some((text) => (text || "").toLowerCase().includes(wanted)));
}

// --- what needs somebody

const KINDS = {task: "task", killed: "agent", guard: "agent", deadlock: "agent", wait: "path", expired: "path", approval: "path", expiring: "agent", slow: "path", "old-copy": "path", conflict: "path", deploy: "path"};

// The detail of a landing has what its help would print.
export function needRow(need, pressing) {
  const asked = need.kind === "approval" && state.model.approvals.find((a) => a.source === need.source && a.path === need.subject);
  const [kind, subject] = asked ? ["approval", asked.approval] : need.kind === "landing" ? ["landing", need.agent] : [KINDS[need.kind], need.subject];
  const buttons = asked ? actions(["approve", subject, "Approve"], ["deny", subject, "Deny"])
    : need.kind === "task" ? actions(["reassign", subject, "Reassign"]) : need.kind === "halt" ? actions(["resume", "", "End the halt"]) : "";
  return el("li", {class: pressing ? undefined : "other"},
    el("strong", {class: "kind", text: need.kind}),
    el("div", null,
      kind && subject ? link(kind, subject, need.message, 500) : bdi(need.message, 500),
      el("p", {class: "dim"}, need.help && need.kind !== "landing" ? el("code", null, bdi(need.help, 300)) : "", " ", el("span", null, "[", bdi(need.source, 100), need.since ? ", " : "", when(need.since), "]"))),
    buttons);
}
