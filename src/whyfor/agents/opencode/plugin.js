// Written by `whyfor init`; `whyfor uninstall` deletes it.
//
// Tells Whyfor when a session begins, is asked and is done, what you are asked to allow and what
// came of it. After `init --memory` it tells each
// new session, with its system prompt, what earlier sessions in its repository found; after
// `init --rules` it asks a running `whyfor serve` for your answer in the browser, while your own
// dialog stays. It never fails and nothing waits for it: whatever is broken, nothing is added.
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"

const HOOK = __HOOK__ // asks what a session is told; null: nothing
const TELL = __TELL__ // tells of an event
const ANSWERS = __ANSWERS__ // where to ask for your answer, and with which key; null: nowhere
const LONGEST = 2000 // milliseconds

function run(command, payload, directory) {
  return new Promise((resolve) => {
    const child = spawn(command[0], command.slice(1), {
      cwd: directory,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: LONGEST,
    })
    let printed = ""
    child.on("error", () => resolve(""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (part) => (printed += part))
    child.on("close", () => resolve(printed))
    child.stdin.end(JSON.stringify(payload))
  })
}

async function told(session, directory) {
  try {
    const printed = await run(HOOK, { session_id: session, source: "startup", cwd: directory }, directory)
    return JSON.parse(printed).hookSpecificOutput.additionalContext
  } catch {
    return ""
  }
}

// A request, in the form in which hooks of other agents tell it.
function request(asked, directory) {
  const facts = asked.metadata ?? {}
  const command = facts.command ?? (facts.filepath ? undefined : (asked.patterns ?? []).join(" "))
  return {
    session_id: asked.sessionID,
    cwd: directory,
    tool_name: asked.permission,
    tool_use_id: asked.tool?.callID,
    tool_input: { command, file_path: facts.filepath },
  }
}

// A server on another port than the default says so in a file.
function address() {
  try {
    const { port } = JSON.parse(readFileSync(ANSWERS.server, "utf8"))
    return Number.isInteger(port) ? ANSWERS.url.replace(/:\d+/, `:${port}`) : ANSWERS.url
  } catch {
    return ANSWERS.url
  }
}

async function answer(payload, signal) {
  const sent = await fetch(address(), {
    method: "POST",
    headers: { Authorization: `Bearer ${ANSWERS.key}`, "Content-Type": "application/json" },
    body: JSON.stringify(payload),
    signal,
  })
  return sent.ok ? (await sent.json()).behavior : undefined
}

export const Whyfor = async ({ client, directory }) => {
  const models = new Map() // by session: the one it was begun with, not that which finds its title
  const texts = new Map() // by session that began here: what it is told, the same with every call
  const children = new Set() // sessions of subagents, whose parents tell of them
  const asked = new Map() // by request: what was asked, and what ends the wait for an answer

  function tell(event, session, more) {
    if (!session || children.has(session)) return
    run([...TELL, event], { hook_event_name: event, session_id: session, cwd: directory, ...more }, directory)
  }

  function created(session) {
    if (session.parentID) children.add(session.id)
    else if (HOOK) texts.set(session.id, told(session.id, session.directory ?? directory))
    else tell("SessionStart", session.id, { source: "startup" })
  }

  async function ask(wanted) {
    const payload = request(wanted, directory)
    const waiting = new AbortController()
    asked.set(wanted.id, { payload, waiting })
    run([...TELL, "PermissionRequest"], { ...payload, hook_event_name: "PermissionRequest" }, directory)
    if (!ANSWERS) return
    const shown = { ...payload.tool_input, diff: wanted.metadata?.diff } // an edit's, to be read
    const said = await answer({ ...payload, tool_input: shown }, waiting.signal)
    const word = { allow: "once", deny: "reject" }[said]
    if (!word || !asked.has(wanted.id)) return
    await client.postSessionIdPermissionsPermissionId({
      path: { id: wanted.sessionID, permissionID: wanted.id },
      body: { response: word },
    })
  }

  function replied({ requestID, reply }) {
    const found = asked.get(requestID)
    if (!found) return
    asked.delete(requestID)
    found.waiting.abort()
    const payload = {
      ...found.payload,
      hook_event_name: "PermissionReplied",
      reason: reply === "reject" ? "denied" : "allowed",
      source: process.argv.includes("run") ? "nobody" : "terminal",
    }
    run([...TELL, "PermissionReplied"], payload, directory)
  }

  return {
    event: async ({ event }) => {
      const session = event?.properties?.info
      if (event?.type === "session.created" && session?.id) created(session)
      if (event?.type === "session.deleted" && session?.id) texts.delete(session.id)
      if (event?.type === "session.idle") tell("Stop", event.properties?.sessionID)
      if (event?.type === "permission.asked") ask(event.properties).catch(() => {})
      if (event?.type === "permission.replied") replied(event.properties)
    },
    "chat.message": async (input, output) => {
      const model = output?.message?.model?.modelID ?? input?.model?.modelID
      if (input?.sessionID && model) models.set(input.sessionID, model)
      const words = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      tell("UserPromptSubmit", input?.sessionID, { prompt: words.map((part) => part.text).join("\n") })
    },
    "experimental.chat.system.transform": async (input, output) => {
      try {
        const wanted = models.get(input.sessionID)
        if (wanted && input.model?.id && input.model.id !== wanted) return
        const text = await texts.get(input.sessionID)
        if (text) output.system.push(text)
      } catch {}
    },
  }
}
