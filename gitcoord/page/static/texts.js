// Texts and elements. Everything that agents wrote is put into the page as text; there is no markup from data anywhere.

export const $ = (id) => document.getElementById(id);

// Characters that would hide, reorder or break what stands beside them are shown as what they are.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
export const plain = (text) => String(text).replace(HIDDEN, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// A long text keeps its beginning and its end: paths differ there.
export function cut(text, most) {
  const points = Array.from(plain(text));
  if (points.length <= most) return points.join("");
  const head = Math.ceil(most * 0.6);
  return points.slice(0, head).join("") + "…" + points.slice(head - most + 1).join("");
}

export function el(tag, set, ...inner) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(set || {})) {
    if (name === "text") node.textContent = plain(value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...inner.filter((one) => one !== null && one !== undefined && one !== ""));
  return node;
}
export const bdi = (text, most = 300) => el("bdi", {text: cut(text, most)});
export const whole = (text) => el("bdi", {text});
export const dim = (...inner) => el("span", {class: "dim"}, ...inner);
export const source = (text) => dim(bdi(text || "", 100));

// A button that opens the detail of something: `page.js` listens to `data-key`.
export function link(kind, subject, words, most = 120) {
  return el("button", {type: "button", class: "link", "data-key": `${kind} ${subject}`, title: plain(subject).slice(0, 2000)}, bdi(words || subject, most));
}
export function links(kind, subjects, most = 3) {
  const shown = subjects.slice(0, most).flatMap((subject, i) => [i ? ", " : "", link(kind, subject)]);
  return el("span", null, ...shown, subjects.length > most ? ` and ${subjects.length - most} more` : "");
}

// --- times: by the server's clock

export const clock = {skew: 0, past: 0}; // `past`: the moment that is looked at, 0 for now
export const now = () => Date.now() / 1000 + clock.skew;

export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${s % 3600 >= 60 ? ` ${Math.floor(s % 3600 / 60)}m` : ""}`;
  return `${Math.floor(s / 86400)}d`;
}
const ago = (seconds) => seconds < 5 ? "now" : `${span(seconds)} ago`;
export const moment = (at) => new Date(at * 1000).toLocaleString();
// `reference`: the moment that is looked at; the timeline and details are of now.
export function when(at, reference = clock.past) {
  return at ? el("time", {datetime: new Date(at * 1000).toISOString(), title: moment(at), "data-at": reference ? undefined : at}, ago((reference || now()) - at)) : "";
}
// Time goes on between two drawings.
export function tick() {
  for (const node of document.querySelectorAll("time[data-at]")) {
    const words = ago(now() - Number(node.dataset.at));
    if (node.textContent !== words) node.textContent = words;
  }
}
