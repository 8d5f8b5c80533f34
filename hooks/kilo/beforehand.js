// Takes a checkpoint before Kilo changes your files. Copy to ~/.config/kilo/plugins/.
//
// It hands each tool call to `beforehand hook --agent kilo` and acts on the answer:
// {} goes on, {"deny": reason} stops the call, {"note": text} is shown. Whatever goes wrong here
// must not stop the agent: a binary that is missing, hangs or prints nonsense is as good as {}.
import { spawn, spawnSync } from "node:child_process"

const BINARY = process.env.BEFOREHAND_BIN || "beforehand"
const WAIT_MS = 30_000

function ask(payload) {
  return new Promise((resolve) => {
    let output = ""
    let child
    try {
      child = spawn(BINARY, ["hook", "--agent", "kilo"], {
        stdio: ["pipe", "pipe", "ignore"],
        timeout: WAIT_MS,
        killSignal: "SIGKILL",
      })
    } catch {
      return resolve({})
    }
    child.on("error", () => resolve({}))
    child.on("close", () => {
      try {
        resolve(JSON.parse(output) ?? {})
      } catch {
        resolve({})
      }
    })
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => (output += text))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

// The same in one go, where Kilo does not wait for a promise; the answer is not needed there.
function askNow(payload) {
  try {
    spawnSync(BINARY, ["hook", "--agent", "kilo"], {
      input: JSON.stringify(payload),
      stdio: ["pipe", "ignore", "ignore"],
      timeout: WAIT_MS,
      killSignal: "SIGKILL",
    })
  } catch {}
}

export const Beforehand = async (instance) => {
  const { client, directory, worktree } = instance

  // The user's latest message in each session is its turn; a child session works for its parent.
  const turns = new Map()
  const parents = new Map()
  let latest
  // The commands with shell lines, and the call that the hook was told of before those of one.
  const commands = new Set()
  let held

  function root(session) {
    let top = session
    for (let depth = 0; parents.has(top) && depth < 20; depth++) top = parents.get(top)
    return top
  }

  // The server may be given its address after us.
  function server() {
    try {
      return instance.serverUrl ? String(instance.serverUrl) : undefined
    } catch {
      return undefined
    }
  }

  function payload(event, session, more) {
    const top = root(session)
    return {
      agent: "kilo",
      hook_event_name: event,
      session_id: top,
      subagent: top === session ? undefined : session,
      message_id: turns.get(top),
      cwd: directory,
      worktree,
      server: server(),
      ...more,
    }
  }

  async function tell(event, session, more) {
    latest = root(session) ?? latest
    const answer = await ask(payload(event, session, more))
    if (typeof answer.note === "string") {
      try {
        await client?.tui?.showToast?.({ body: { message: answer.note, variant: "warning" } })
      } catch {}
    }
    return answer
  }

  function shellLines(session, command) {
    return { session, call: { call_id: `command-${Date.now()}`, tool_name: "command", tool_input: { command } } }
  }

  // Kilo runs the shell lines of a command before it calls any hook. Right before that it reads the
  // command's text, as it does several times to list the commands, so a session that is under way is
  // held then.
  function holdBeforeShellLines(settings) {
    for (const [name, command] of Object.entries(settings?.command ?? {})) {
      let text = command?.template
      if (typeof text !== "string" || !text.includes("!`") || text.includes("BEFOREHAND_ARGUMENTS")) continue
      commands.add(name)
      Object.defineProperty(command, "template", {
        configurable: true,
        enumerable: true,
        get() {
          if (latest && !(Date.now() - held?.at < 1000)) {
            held = shellLines(latest, name)
            askNow(payload("command.execute.before", latest, held.call))
            held.at = Date.now()
          }
          return text
        },
        set(changed) {
          text = changed
        },
      })
    }
  }

  return {
    config: async (settings) => holdBeforeShellLines(settings),
    event: async ({ event }) => {
      const info = event?.properties?.info
      const session = event?.properties?.sessionID ?? info?.id
      if (event?.type === "session.created" && info?.parentID) parents.set(info.id, info.parentID)
      if (["session.created", "session.idle", "session.deleted"].includes(event?.type)) {
        await tell(event.type, session, {})
      }
    },
    "chat.message": async (input, output) => {
      if (parents.has(input.sessionID)) return
      turns.set(input.sessionID, output?.message?.id)
      const texts = (output?.parts ?? []).filter((part) => part.type === "text")
      const prompt = texts.map((part) => part.text).join("\n")
      await tell("chat.message", input.sessionID, { prompt: prompt || undefined })
    },
    // Comes after the shell lines, and before the prompt of the command.
    "command.execute.before": async (input) => {
      const session = root(input.sessionID)
      const ran = commands.has(input.command) && held?.session === session ? held : undefined
      held = undefined
      if (ran) await tell("command.executed", session, ran.call)
      else await tell("command.execute.before", session, shellLines(session, input.command).call)
    },
    "tool.execute.before": async (input, output) => {
      const call = { call_id: input.callID, tool_name: input.tool, tool_input: output?.args }
      const answer = await tell("tool.execute.before", input.sessionID, call)
      if (typeof answer.deny === "string") throw new Error(answer.deny)
    },
    "tool.execute.after": async (input) => {
      const call = { call_id: input.callID, tool_name: input.tool, tool_input: input.args }
      await tell("tool.execute.after", input.sessionID, call)
    },
  }
}
