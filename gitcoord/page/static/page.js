// The page: asks for what it shows, draws it, and asks again when the stream says that something changed.
import {ACTIONS, act, openConfirm} from "/confirm.js";
import {closeDetail, drawDetail, eventLine, keepFocus, openDetail} from "/details.js";
import {LISTS, needRow, sections} from "/lists.js";
import {KEY, ask, failed, lost, notice, post, state} from "/requests.js";
import {$, bdi, clock, cut, el, link, moment, now, span, tick} from "/texts.js";

const timeline = {oldest: 0, sliding: 0, drawn: false};
let source = null;

// --- the overview

function draw() {
  const model = state.model;
  clock.past = model.past ? model.at : 0;
  document.title = `${model.needs_you.length ? `(${model.counts.needs_you}) ` : ""}${cut(model.repository, 60)} · gitcoord`;
  $("repository").textContent = cut(model.repository, 80);
  $("halt").hidden = !model.acts || model.past;
  $("halt").textContent = model.halted ? "End the halt" : "Halt everything";
  $("halt").dataset.key = model.halted ? "resume " : "halt ";
  $("past").hidden = !model.past;
  $("past-words").textContent = model.past ? `The state after event ${model.seq}, ${moment(model.at)}, by the ledger alone: heartbeats are not kept.` : "";
  notice([model.trouble, model.offline, ...model.warnings].filter(Boolean).join("; "));
  const lists = sections(model);
  keepFocus(() => {
    drawNeeds(model);
    $("lists").replaceChildren(...lists.length ? lists : [el("p", {class: "dim"}, "No row has this text.")]);
    $("nav").replaceChildren(...[...lists, $("timeline"), $("contention")].map((one) => el("a", {href: `#${one.id}`, "data-key": `go ${one.id}`}, one.querySelector("h2").firstChild.textContent)));
  });
  if (!timeline.drawn) {
    performance.mark("gitcoord-drawn");
    whenSeen($("contention"), measure);
  }
  timeline.drawn = true;
  connected();
  state.last = model.past ? Math.max(state.last, model.seq) : model.seq;
  drawSlider();
}

function drawNeeds(model) {
  const title = $("needs-title"), many = model.counts.needs_you;
  const words = many ? `${many} ${many === 1 ? "thing needs" : "things need"} you` : "nothing needs you";
  if (title.textContent !== words) title.textContent = words; // it is read aloud when it changes
  title.className = many ? "pressing" : "calm";
  const others = model.needs_person.map((need) => needRow(need, false));
  if (others.length) others.unshift(el("li", {class: "other"}, el("strong", null, `needs a person: ${model.counts.needs_person}`)));
  $("needs-list").replaceChildren(...model.needs_you.map((need) => needRow(need, true)), ...others);
  $("early").hidden = !model.early_warnings.length;
  $("early-title").textContent = `Early warnings: ${model.counts.early_warnings}`;
  $("early-list").replaceChildren(...model.early_warnings.map((need) => needRow(need, false)));
}

const where = () => state.seq ? {seq: state.seq} : {};
async function refresh() {
  if (refresh.running) { refresh.again = true; return; }
  refresh.running = true;
  try {
    const model = await ask("overview", where());
    const rows = {};
    for (const name of Object.keys(LISTS)) if (name !== "landing") rows[name] = await rowsOf(name, model);
    Object.assign(state, {model, rows, fetched: now()});
    draw();
    await drawDetail(false);
  } catch (error) {
    failed(error);
  } finally {
    refresh.running = false;
    if (refresh.again) { refresh.again = false; refresh(); }
  }
}
async function rowsOf(name, model) {
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

// --- timeline and time travel

const newest = () => Number($("events").firstElementChild ? $("events").firstElementChild.dataset.event : 0);
async function loadTimeline(before) {
  const found = await ask("timeline", {before});
  if (!before && found.events.length && newest() > found.events[0].seq) return; // an answer that was overtaken
  const lines = found.events.map(eventLine);
  if (before) $("events").append(...lines);
  else $("events").replaceChildren(...lines);
  timeline.oldest = found.events.length ? found.events[found.events.length - 1].seq : 0;
  $("older").hidden = !found.more;
}
// Events that the stream tells go on top of the list. Where some are missing between, it is asked for anew.
function addEvents(told) {
  if (told.gap) $("events").replaceChildren();
  const known = newest(), fresh = told.events.filter((event) => event.seq > known);
  if (!known || told.seq > known + fresh.length) loadTimeline(0).catch(failed);
  else $("events").prepend(...fresh.reverse().map(eventLine));
  while ($("events").childElementCount > 1000) $("events").lastElementChild.remove();
}
async function travel(seq) {
  state.seq = seq;
  await refresh();
}
function drawSlider() {
  const slider = $("slider");
  slider.max = state.last;
  slider.disabled = state.last < 2;
  if (timeline.sliding) return;
  slider.value = state.model && state.model.past ? state.model.seq : state.last;
  $("slider-seq").textContent = state.model && state.model.past ? state.model.seq : `${state.last} (now)`;
}

// --- contention

async function measure() {
  const found = await ask("contention", {of: "7d"});
  const most = Math.max(1, ...found.paths.map((r) => r.waits.total));
  const row = (r) => {
    const cells = {path: link("path", r.path), waited: el("span", null, span(r.waits.total), bar(r.waits.total / most)), waits: r.waits.count, p95: span(r.waits.p95), grants: r.grants, "held p50": span(r.holds.p50), refused: r.refusals, expired: r.expiries};
    return el("tr", null, ...Object.entries(cells).map(([name, value]) => el("td", {"data-label": name, class: name === "waited" ? "chart" : undefined}, value)));
  };
  const head = ["path", "waited", "waits", "p95", "grants", "held p50", "refused", "expired"];
  const hot = found.hot.map((r) => el("li", {class: "other"}, el("strong", {class: "kind"}, "hot"), el("div", null, link("path", r.path, `${r.path}: ${r.words}`, 300), el("p", {class: "dim"}, bdi(r.help.join("; "), 500)))));
  const body = found.paths.length ? [el("table", {"aria-labelledby": "contention-title"}, el("thead", null, el("tr", null, ...head.map((c) => el("th", {scope: "col"}, c)))), el("tbody", null, ...found.paths.map(row)))] : [el("p", {class: "dim"}, "Nobody claimed or waited for anything in this time.")];
  $("contention-body").replaceChildren(el("ul", {class: "needs"}, ...hot), ...body, el("p", {class: "more"}, el("button", {type: "button", "data-key": "measure "}, "Measure again")));
}
// It costs a look through the ledger, so it waits until somebody looks there.
function whenSeen(node, what) {
  new IntersectionObserver((seen, observer) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    observer.disconnect();
    what().catch(failed);
  }).observe(node);
}
function bar(share) {
  const made = (tag, set) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(set)) node.setAttribute(name, value);
    return node;
  };
  const svg = made("svg", {class: "bar", "aria-hidden": "true"});
  svg.append(made("rect", {width: `${100 * share}%`, height: "100%"}));
  return svg;
}

// --- the stream

function connected() {
  if (!state.live || !state.model) return;
  $("connection").textContent = state.model.acts ? "live" : "live, read-only";
  $("connection").className = "";
}
function connect() {
  if (source) source.close();
  const mine = source = new EventSource(`/api/stream?key=${encodeURIComponent(localStorage.getItem(KEY) || "")}`);
  mine.addEventListener("change", (message) => {
    const told = JSON.parse(message.data);
    state.live = true;
    connected();
    addEvents(told);
    state.last = Math.max(state.last, told.seq);
    drawSlider();
    if (!state.seq) refresh();
  });
  mine.onerror = () => {
    if (mine !== source) return;
    lost("connection lost, trying again");
    if (mine.readyState !== EventSource.CLOSED) return;
    mine.close();
    ask("overview").catch(failed); // says whether the link is what is missing
    setTimeout(begin, 2000);
  };
}
function begin() {
  refresh();
  loadTimeline(0).catch(failed);
  connect();
}

// --- what a person does

const CLICKS = {
  more: (name) => { state.pages[name] = (state.pages[name] || 1) + 1; refresh(); },
  event: (seq) => travel(Number(seq)),
  now: () => travel(0).then(() => $("needs").focus()),
  older: () => loadTimeline(timeline.oldest).catch(failed),
  measure: () => measure().catch(failed),
  close: closeDetail,
};
function click(event) {
  const node = event.target.closest("button[data-key]");
  if (!node) return;
  const at = node.dataset.key.indexOf(" "), word = node.dataset.key.slice(0, at), subject = node.dataset.key.slice(at + 1);
  if (word in CLICKS) CLICKS[word](subject);
  else if (word in ACTIONS) openConfirm(word, subject).catch(failed);
  else openDetail(word, subject, node).catch(failed);
}
const later = (wait, what) => { let timer; return () => { clearTimeout(timer); timer = setTimeout(what, wait); }; };

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
  document.addEventListener("click", click);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("confirm").open) closeDetail(); });
  $("confirm-no").addEventListener("click", () => $("confirm").close());
  const confirmed = () => act().then(refresh);
  $("confirm-yes").addEventListener("click", confirmed);
  $("confirm-reason").addEventListener("keydown", (event) => { if (event.key === "Enter") confirmed(); });
  $("find").addEventListener("input", later(200, () => { state.find = $("find").value; state.pages = {}; refresh(); }));
  const slide = later(150, () => {
    const wanted = timeline.sliding;
    timeline.sliding = 0;
    travel(wanted >= state.last ? 0 : wanted);
  });
  $("slider").addEventListener("input", () => {
    timeline.sliding = Number($("slider").value);
    $("slider-seq").textContent = timeline.sliding;
    slide();
  });
  setInterval(() => { if (!document.hidden) tick(); }, 5000);
  setInterval(() => { if (!document.hidden && source && source.readyState === 1) refresh(); }, 60000);
  begin();
}
start();
