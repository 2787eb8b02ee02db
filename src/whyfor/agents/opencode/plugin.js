// Written by `whyfor init --memory`; `whyfor uninstall` deletes it.
//
// Tells each new session, with its system prompt, what earlier sessions in its repository found. It
// asks Whyfor's hook once per session and never fails: whatever is broken, nothing is added.
import { spawn } from "node:child_process"

const HOOK = __HOOK__
const LONGEST = 2000 // milliseconds

function told(session, directory) {
  return new Promise((resolve) => {
    const child = spawn(HOOK[0], HOOK.slice(1), {
      cwd: directory,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: LONGEST,
    })
    let printed = ""
    child.on("error", () => resolve(""))
    child.stdin.on("error", () => {})
    child.stdout.on("data", (part) => (printed += part))
    child.on("close", () => {
      try {
        resolve(JSON.parse(printed).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    })
    child.stdin.end(JSON.stringify({ session_id: session, source: "startup", cwd: directory }))
  })
}

export const Whyfor = async ({ directory }) => {
  const models = new Map() // by session: the one it was begun with, not that which finds its title
  const texts = new Map() // by session that began here: what it is told, the same with every call
  return {
    event: async ({ event }) => {
      const session = event?.properties?.info
      if (event?.type === "session.created" && session?.id && !session.parentID) {
        texts.set(session.id, told(session.id, session.directory ?? directory))
      }
      if (event?.type === "session.deleted" && session?.id) texts.delete(session.id)
    },
    "chat.message": async (input, output) => {
      const model = output?.message?.model?.modelID ?? input?.model?.modelID
      if (input?.sessionID && model) models.set(input.sessionID, model)
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
