// Written by `whyfor init`; `whyfor uninstall` deletes it.
//
// Tells Whyfor when a session begins, is asked, is done and ends. After `init --memory` it tells
// each new session what earlier sessions in its repository found. It never fails and nothing waits
// for it but that: whatever is broken, nothing is added.
import { spawn } from "node:child_process"

const HOOK = __HOOK__ // asks what a session is told; null: nothing
const TELL = __TELL__ // tells of an event
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

// A session's file is called after its time and its id; a session without a file is nobody's.
function session(context) {
  try {
    return /_([^_/\\]+)\.jsonl$/.exec(context.sessionManager.getSessionFile() ?? "")?.[1]
  } catch {
    return undefined
  }
}

export default function (pi) {
  let untold = false // a new session that was not told yet what earlier ones found

  async function tell(event, context, more) {
    const id = session(context)
    if (!id) return ""
    const payload = { hook_event_name: event, session_id: id, cwd: context.cwd, ...more }
    return run(event === "SessionStart" && HOOK ? HOOK : [...TELL, event], payload, context.cwd)
  }

  pi.on("session_start", async (event, context) => {
    if (HOOK) untold = true
    else tell("SessionStart", context, { source: event?.reason ?? "startup" })
  })
  pi.on("input", async (event, context) => {
    if (event?.source !== "extension") tell("UserPromptSubmit", context, { prompt: event?.text ?? "" })
  })
  pi.on("agent_end", async (event, context) => {
    tell("Stop", context, {})
  })
  pi.on("session_shutdown", async (event, context) => {
    await tell("SessionEnd", context, { reason: event?.reason })
  })
  pi.on("before_agent_start", async (event, context) => {
    if (!untold) return undefined
    untold = false
    try {
      const printed = await tell("SessionStart", context, { source: "startup" })
      const content = JSON.parse(printed).hookSpecificOutput.additionalContext
      return { message: { customType: "whyfor", content, display: false } }
    } catch {
      return undefined
    }
  })
}
