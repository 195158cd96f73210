// The details of a path, an agent, a task, a landing and an approval, in a drawer beside the lists.
import {actions} from "/lists.js";
import {ask, state} from "/requests.js";
import {$, bdi, dim, el, link, links, moment, plain, source, span, when, whole} from "/texts.js";

const shown = {kind: "", subject: "", opener: null, ledger: ""};

const item = (first, facts, text, ...more) => el("li", null, el("p", null, ...first, " ", dim(...facts)), text ? el("p", null, whole(text)) : "", ...more);
const storyLine = (row) => el("li", {class: "event"}, el("span", {class: "dim"}, `${row.seq}`), dim(when(row.at, 0)), whole(row.words));
export function eventLine(event) {
  const back = el("button", {type: "button", class: "link", "data-key": `event ${event.seq}`, "aria-label": `Show the state after event ${event.seq}`}, `${event.seq}`);
  return el("li", {class: "event", "data-event": event.seq}, back, dim(when(event.at, 0)), bdi(event.words, 400));
}
const claimFacts = (c) => [c.mode, " ", when(c.since, 0), `, event ${c.token}`];

export function diffLines(diff) {
  const colours = {"+": "added", "-": "removed", "@": "dim"};
  return el("pre", {tabindex: 0, role: "region", "aria-label": "the change"}, ...diff.split("\n").flatMap((line, i) => [i ? "\n" : "", el("span", {class: colours[line[0]], text: line})]));
}

const DETAILS = {
  path: (d) => [
    ...part("Held by", d.claims, (c) => item([link("agent", c.agent), " ", c.path === d.path ? "" : link("path", c.path)], claimFacts(c), c.reason)),
    ...part("Waiting", d.waits, (w) => item([link("agent", w.agent)], [`#${w.ticket} ${w.priority} `, when(w.since, 0), `, event ${w.ticket}`], w.reason, actions(["raise", w.ticket, "Raise"], ["withdraw", w.ticket, "Withdraw"]))),
    ...part("Notes", d.notes, (n) => item([link("agent", n.agent)], [when(n.at, 0), `, event ${n.seq}`], n.text)),
    ...part("Story", [...d.story].reverse(), storyLine, "nothing is on record about it"),
  ],
  agent: (d) => [
    el("p", null, `${d.agent.activity}, session ${d.agent.session}, `, when(d.agent.since, 0), " ", source(`[${d.agent.source}]`)),
    actions(d.agent.activity === "killed" ? ["revive", d.agent.agent, "Revive"] : ["kill", d.agent.agent, "Kill"]),
    ...part("Holds", d.claims, (c) => item([link("path", c.path)], claimFacts(c), c.reason)),
    ...part("Waits for", d.waits, (w) => item([links("path", w.paths, 20)], [`#${w.ticket} ${w.priority} `, when(w.since, 0), `, event ${w.ticket}`], w.reason, actions(["raise", w.ticket, "Raise"], ["withdraw", w.ticket, "Withdraw"]))),
    ...part("Tasks", d.tasks, (t) => item([link("task", t.id)], [`${t.state}, ${plain(t.source)}`], t.title)),
    ...part("Last events", d.story, eventLine, "nothing is on record about it"),
  ],
  task: (d) => [
    el("p", {class: "lead"}, whole(d.task.title)),
    el("p", null, `${d.task.state}, ${d.task.priority}`, d.task.owner ? ", " : "", d.task.owner ? link("agent", d.task.owner) : "", " ", source(`[record of ${d.task.id} in the ledger]`)),
    d.task.reason ? el("p", null, "Reason: ", whole(d.task.reason)) : null,
    actions(["raise", d.task.id, "Priority"], ["reassign", d.task.id, "Reassign"]),
    d.task.body ? el("pre", {text: d.task.body, tabindex: 0, role: "region", "aria-label": "what is to be done"}) : null,
    ...part("Claims", d.claims, (c) => item([link("path", c.path), " ", link("agent", c.agent)], claimFacts(c))),
    ...part("Story", [...d.story].reverse(), storyLine),
  ],
  landing: (d) => [
    el("p", null, "onto ", whole(d.trunk), ", by ", link("agent", d.agent)),
    ...part("Has the turn", d.landing, (r) => item([whole(r.reason)], [when(r.since, 0), ", ", plain(r.source)])),
    ...part("Waits for a turn", d.waiting, (r) => item([`${r.position}. `, whole(r.reason)], [when(r.since, 0), ", ", plain(r.source)], "", actions(["raise", r.ticket, "Raise"], ["withdraw", r.ticket, "Withdraw"]))),
    ...part("Under way", d.open, (r) => item([whole(r.branch)], [`${r.how}, `, plain(r.source)], "", ...r.checks.map((c) => el("p", null, whole(c.command), ` exit ${c.code}, ${span(c.seconds)}`)))),
    ...part("Failed", d.failed, (r) => item([whole(r.branch)], [when(r.at, 0), ", note of this clone"], r.message, r.output ? el("pre", {text: r.output, tabindex: 0, role: "region", "aria-label": "output of the check"}) : null)),
    ...part("Landed before", d.story, eventLine),
  ],
  approval: (d) => [
    el("p", null, link("path", d.approval.path)),
    el("p", null, `${d.approval.state}, asked by `, link("agent", d.approval.agent), " ", when(d.approval.at, 0), " ", source(`[rule ${d.approval.rule}, request ${d.approval.id}]`)),
    d.approval.state === "open" ? actions(["approve", d.approval.id, "Approve"], ["deny", d.approval.id, "Deny"]) : null,
    diffLines(d.diff),
  ],
};

function part(title, rows, line, none) {
  const given = rows || [];
  if (!given.length && !none) return [];
  return [el("h3", null, title), given.length ? el("ul", {class: "events"}, ...given.map(line)) : el("p", {class: "dim"}, none)];
}

// --- the drawer

export async function openDetail(kind, subject, opener) {
  if (!shown.kind) shown.opener = opener;
  Object.assign(shown, {kind, subject});
  await drawDetail(true);
}

export async function drawDetail(fresh) {
  const {kind, subject} = shown, ledger = state.model ? state.model.ledger : "";
  const told = ["path", "task"].includes(kind); // follows from the ledger alone, and costs a look through it
  if (!kind || (told && !fresh && ledger === shown.ledger)) return;
  let body;
  try {
    body = DETAILS[kind](await ask(kind, {of: subject}));
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    body = [el("p", {text: error.message})];
  }
  if (shown.kind !== kind || shown.subject !== subject) return;
  if (state.model && state.model.past) body.unshift(el("p", {class: "other"}, `This is as it is now, not as it was on ${moment(state.model.at)}.`));
  shown.ledger = state.model && !state.model.past ? ledger : "";
  keepFocus(() => $("detail-body").replaceChildren(...body.filter(Boolean)));
  $("detail-title").replaceChildren(dim(kind), " ", whole(subject));
  $("detail").hidden = false;
  if (fresh) {
    $("detail").scrollTop = 0;
    $("detail-title").focus();
  }
}

export function closeDetail() {
  if (!shown.kind) return;
  shown.kind = "";
  $("detail").hidden = true;
  const key = shown.opener && shown.opener.dataset.key;
  const found = shown.opener && shown.opener.isConnected ? shown.opener : [...document.querySelectorAll("main [data-key]")].find((node) => node.dataset.key === key);
  (found || $("needs")).focus();
}

// What had the focus before a drawing has it afterwards, although it is another element.
export function keepFocus(draw) {
  const key = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : "";
  draw();
  if (!key || (document.activeElement && document.activeElement.dataset && document.activeElement.dataset.key === key)) return;
  const found = [...document.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key);
  if (found) found.focus({preventScroll: true});
}
