// Takes a checkpoint before pi changes your files. Copy to ~/.pi/agent/extensions/.
//
// It hands each tool call to `beforehand hook --agent pi` and acts on the answer: {} goes on,
// {"ask": reason} asks the user, {"deny": reason} stops the call, {"note": text} is shown. pi stops
// a call whose handler fails, so no handler here fails: a binary that is missing, hangs or prints
// nonsense is as good as {}.
import { spawn } from "node:child_process"

const BINARY = process.env.BEFOREHAND_BIN || "beforehand"
const WAIT_MS = 30_000

// Where a pi that runs in a tool of another finds the session and turn it works for.
const PARENT = "BEFOREHAND_PI_PARENT"

function ask(payload) {
  return new Promise((resolve) => {
    let output = ""
    let child
    try {
      child = spawn(BINARY, ["hook", "--agent", "pi"], {
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

// The session and turn of the pi that started this one; none if this process wrote them itself.
function parent() {
  const [pid, session, turn] = (process.env[PARENT] ?? "").split(" ")
  return session && pid !== String(process.pid) ? { session, turn } : undefined
}

// A question that cannot be shown is not answered with yes.
async function agrees(question, ctx) {
  const yes = "Run it"
  try {
    return (await ctx.ui.select(question, ["Do not run it", yes])) === yes
  } catch {
    return false
  }
}

export default function (pi) {
  const above = parent()
  let turn
  let turns = 0

  async function tell(event, ctx, more) {
    const session = ctx?.sessionManager?.getSessionId?.()
    const answer = await ask({
      agent: "pi",
      hook_event_name: event,
      session_id: above?.session ?? session,
      subagent: above ? session : undefined,
      turn_id: above ? above.turn : turn,
      cwd: ctx?.cwd,
      // In a mode without dialogs there is nobody to ask.
      permission_mode: ctx?.hasUI ? "default" : ctx?.mode,
      transcript_path: above ? undefined : ctx?.sessionManager?.getSessionFile?.(),
      ...more,
    })
    if (typeof answer.note === "string") {
      try {
        ctx?.ui?.notify?.(answer.note, "warning")
      } catch {}
    }
    return answer
  }

  // Says what a handler returns; nothing if it fails.
  function on(name, handler) {
    pi.on(name, async (event, ctx) => {
      try {
        return await handler(event, ctx)
      } catch {
        return undefined
      }
    })
  }

  // Of a pi that works for another only the calls are reported: session and turn are the other's.
  for (const name of ["session_start", "agent_settled", "session_shutdown"]) {
    on(name, async (_event, ctx) => {
      if (!above) await tell(name, ctx, {})
    })
  }

  on("before_agent_start", async (event, ctx) => {
    // A message of an extension's begins no turn of the user's.
    if (above || event.messageType === "custom") return
    turns += 1
    turn = `${Date.now().toString(36)}-${turns}`
    const session = ctx.sessionManager.getSessionId()
    process.env[PARENT] = `${process.pid} ${session} ${turn}`
    await tell("before_agent_start", ctx, { prompt: event.prompt || undefined })
  })

  on("tool_call", async (event, ctx) => {
    const call = { call_id: event.toolCallId, tool_name: event.toolName, tool_input: event.input }
    const answer = await tell("tool_call", ctx, call)
    if (typeof answer.deny === "string") return { block: true, reason: answer.deny }
    if (typeof answer.ask === "string" && !(await agrees(answer.ask, ctx))) {
      return { block: true, reason: `${answer.ask}: the user did not agree` }
    }
  })

  on("tool_result", async (event, ctx) => {
    const call = { call_id: event.toolCallId, tool_name: event.toolName, tool_input: event.input }
    await tell("tool_result", ctx, call)
  })

  // The user's own `!` commands are no calls of the agent's.
  on("user_bash", async (event, ctx) => {
    await tell("user_bash", ctx, { cwd: event.cwd ?? ctx.cwd, tool_input: { command: event.command } })
  })
}
