// Asks gitcoord before an action of OpenCode, and tells it of starts and ends. An action that is not allowed in so many
// words is thrown out: a guard that fails, hangs or says something else allows nothing.
// Where gitcoord is not installed it does nothing, and says so once: this file is committed, and colleagues may not have it.
import { spawn } from "node:child_process"
import { accessSync, constants } from "node:fs"

const PATH = `${process.env.PATH ?? ""}:${process.env.HOME ?? ""}/.local/bin`
const LIMIT = 10000 // milliseconds; the guard's own limit is below it

function ask(event, cwd) {
  return new Promise((resolve) => {
    let out = ""
    let err = ""
    const child = spawn("git", ["coord", "guard"], { cwd, env: { ...process.env, PATH }, stdio: ["pipe", "pipe", "pipe"] })
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      err = "gitcoord took too long to judge this"
    }, LIMIT)
    child.on("error", (error) => {
      clearTimeout(timer)
      resolve({ reason: `gitcoord could not be started: ${error.message}` })
    })
    child.stdout.on("data", (data) => (out += data))
    child.stderr.on("data", (data) => (err += data))
    child.stdin.on("error", () => {})
    child.on("close", (code) => {
      clearTimeout(timer)
      let answer = null
      try {
        answer = code === 0 ? JSON.parse(out) : null
      } catch {
        answer = null
      }
      resolve(answer ?? { reason: err.trim() || "gitcoord could not judge this" })
    })
    child.stdin.end(JSON.stringify({ opencode: 1, cwd, ...event }))
  })
}

function isInstalled() {
  return PATH.split(":").some((directory) => {
    try {
      accessSync(`${directory}/git-coord`, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

export const Gitcoord = async ({ client, directory }) => {
  if (!isInstalled()) {
    console.warn("gitcoord is not installed: its hooks do nothing")
    return {}
  }
  const parents = new Map() // session -> its parent's; '' for one that has none
  const contexts = new Map()
  const tokens = new Map()
  const given = new Map() // call -> its arguments

  async function begin(session, parent) {
    if (!session || parents.has(session)) return
    parents.set(session, parent ?? "")
    if (parent === undefined) {
      try {
        const found = await client.session.get({ path: { id: session } })
        parents.set(session, found?.data?.parentID ?? "")
      } catch {
        // An older server: then the conversation is taken for one of its own.
      }
    }
    const above = parents.get(session)
    const answer = await ask({ event: above ? "subagent-start" : "start", session, parent: above }, directory)
    const told = [answer.decision === "allow" ? "" : answer.reason, answer.context].filter(Boolean).join("\n")
    if (told) contexts.set(session, told)
  }

  const of = (session) => ({ session, parent: parents.get(session) ?? "" })

  async function end(session, final) {
    if (!session || !parents.has(session)) return
    const spent = tokens.get(session) ?? new Map()
    const sum = [...spent.values()].reduce((all, one) => all + one, 0)
    tokens.delete(session)
    const event = parents.get(session) ? "subagent-stop" : "stop"
    await ask({ event, ...of(session), tokens: sum, final }, directory)
    if (final) {
      parents.delete(session)
      contexts.delete(session)
    }
  }

  return {
    // `opencode run` deletes no session when it ends.
    dispose: async () => {
      for (const session of [...parents.keys()]) if (!parents.get(session)) await end(session, true)
    },
    // So that `git claim` and git's hooks know the conversation; a subagent's shell is its parent's.
    "shell.env": async (input, output) => {
      if (input?.sessionID) output.env.OPENCODE_SESSION_ID = parents.get(input.sessionID) || input.sessionID
    },
    event: async ({ event }) => {
      const info = event?.properties?.info
      if (event?.type === "session.created") await begin(info?.id, info?.parentID ?? "")
      if (event?.type === "session.idle") await end(event.properties?.sessionID, false)
      if (event?.type === "session.deleted") await end(info?.id, true)
      if (event?.type === "message.updated" && info?.role === "assistant" && info.tokens) {
        if (!tokens.has(info.sessionID)) tokens.set(info.sessionID, new Map())
        tokens.get(info.sessionID).set(info.id, (info.tokens.input ?? 0) + (info.tokens.output ?? 0))
      }
    },
    "chat.message": async (input) => {
      await begin(input?.sessionID)
    },
    "experimental.chat.system.transform": async (input, output) => {
      const told = contexts.get(input?.sessionID) ?? (input?.sessionID ? "" : [...contexts.values()].at(-1))
      if (told) output.system.push(told)
    },
    "tool.execute.before": async (input, output) => {
      await begin(input.sessionID)
      const args = output.args ?? {}
      const event = { event: "before", ...of(input.sessionID), call: input.callID, tool: input.tool, args }
      const answer = await ask(event, directory)
      if (answer.decision !== "allow") throw new Error(answer.reason || "gitcoord does not allow this")
      given.set(input.callID, args)
    },
    "tool.execute.after": async (input, output) => {
      const args = input.args ?? given.get(input.callID) ?? {}
      given.delete(input.callID)
      const exit = output?.metadata?.exit
      const failed = Boolean(output?.metadata?.error) || (typeof exit === "number" && exit !== 0)
      const event = { event: "after", ...of(input.sessionID), call: input.callID, tool: input.tool, args, failed }
      const answer = await ask(event, directory)
      const told = [answer.decision === "deny" ? answer.reason : "", answer.context].filter(Boolean).join("\n")
      if (told && typeof output?.output === "string") output.output += `\n\n${told}`
    },
  }
}
