// The actions of a person: shown in words first, done only as they were shown, with a reason for the record.
import {diffLines} from "/details.js";
import {ask, post, state, wordsOf} from "/requests.js";
import {$, cut, el, plain, whole} from "/texts.js";

// The word of the button that does it, and whether it takes something away.
export const ACTIONS = {
  approve: ["Approve"], deny: ["Deny", true], kill: ["Kill", true], revive: ["Revive"], halt: ["Halt everything", true], resume: ["End the halt"],
  raise: ["Set the priority"], reassign: ["Reassign"], withdraw: ["Withdraw", true],
};
const VALUES = {
  raise: () => el("select", null, ...["critical", "high", "normal", "low"].map((name) => el("option", {selected: name === "high"}, name))),
  reassign: () => el("input", {type: "text", list: "agents-known", maxlength: 64, autocomplete: "off", spellcheck: "false"}),
};
let wanted = null;

export async function openConfirm(action, subject) {
  wanted = {action, subject, value: "", seal: ""};
  const field = VALUES[action] && VALUES[action]();
  const [words, takes] = ACTIONS[action];
  $("confirm-title").textContent = `${words} ${cut(subject, 80)}`;
  $("confirm-value").replaceChildren(...field ? [el("label", {class: "field"}, action === "raise" ? "Priority " : "To the agent ", field)] : []);
  if (action === "reassign") $("confirm-value").append(el("datalist", {id: "agents-known"}, ...state.model.agents.slice(0, 50).map((a) => el("option", {value: a.agent}))));
  if (field) field.addEventListener("input", () => { clearTimeout(field.timer); field.timer = setTimeout(() => plan(field.value), 200); });
  $("confirm-plan").replaceChildren();
  $("confirm-reason").value = "";
  $("confirm-record").textContent = `On record as ${plain(state.model.person)}.`;
  $("confirm-error").textContent = "";
  $("confirm-yes").textContent = words;
  $("confirm-yes").className = takes ? "danger" : "primary";
  $("confirm-yes").disabled = true;
  $("confirm").showModal();
  (field || $("confirm-reason")).focus();
  if (!field || field.value) await plan(field ? field.value : "");
}

async function plan(value) {
  const mine = wanted;
  mine.value = value;
  mine.seal = "";
  $("confirm-yes").disabled = true;
  try {
    const found = await ask("plan", {action: mine.action, subject: mine.subject, value});
    if (wanted !== mine || mine.value !== value) return;
    Object.assign(mine, {seal: found.seal, title: found.title});
    $("confirm-title").replaceChildren(whole(found.title));
    $("confirm-plan").replaceChildren(el("ul", null, ...found.lines.map((line) => el("li", null, whole(line)))), found.diff ? diffLines(found.diff) : "");
    $("confirm-error").textContent = "";
    $("confirm-yes").disabled = false;
  } catch (error) {
    if (wanted !== mine) return;
    $("confirm-plan").replaceChildren();
    $("confirm-error").textContent = plain(wordsOf(error));
  }
}

export async function act() {
  const mine = wanted;
  if ($("confirm-yes").disabled) return;
  $("confirm-yes").disabled = true;
  const {action, subject, value, seal} = mine;
  try {
    const done = await post("act", {action, subject, value, seal, reason: $("confirm-reason").value});
    if (wanted === mine) $("confirm").close();
    say(`done: ${mine.title}${done.said ? "; " + done.said.join("; ") : ""}`);
  } catch (error) {
    if (wanted !== mine) return;
    if (error.code === "changed") await plan(value);
    $("confirm-error").textContent = plain(wordsOf(error));
  }
}

function say(text) {
  $("said").textContent = plain(text);
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { $("said").textContent = ""; }, 8000);
}
