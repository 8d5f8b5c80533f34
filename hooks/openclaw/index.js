// Takes a checkpoint before OpenClaw changes your files. Copy its directory to
// ~/.openclaw/extensions/beforehand, and enable it: `openclaw plugins enable beforehand`.
//
// It hands each tool call to `beforehand hook --agent openclaw` and acts on the answer: {} goes on,
// {"ask": reason} asks for approval, {"deny": reason} stops the call, {"note": text} is logged.
// OpenClaw stops a call whose handler fails, so no handler here fails: a binary that is missing,
// hangs or prints nonsense is as good as {}.
import { spawn } from "node:child_process"

const BINARY = process.env.BEFOREHAND_BIN || "beforehand"
const WAIT_MS = 30_000

// OpenClaw's own limit, 15 seconds without this, must not end the wait first.
const LIMIT = { timeoutMs: WAIT_MS + 15_000 }

// The longest wait for an approval, and the longest texts in one, that OpenClaw takes.
const APPROVAL_MS = 600_000
const CHARS_MAX = 512

function ask(payload) {
  return new Promise((resolve) => {
    let output = ""
    let child
    try {
      child = spawn(BINARY, ["hook", "--agent", "openclaw"], {
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

function register(api) {
  // By session key: the session and run of its latest event, and for a sub-agent those it works for.
  const latest = new Map()
  const parents = new Map()
  const workspaces = new Map()

  function root(key) {
    let top = key
    for (let depth = 0; parents.has(top) && depth < 20; depth++) top = parents.get(top)
    return top
  }

  // Events of tools do not name the directory; the configuration does.
  function workspace(ctx) {
    const known = ctx.workspaceDir ?? workspaces.get(ctx.sessionKey)
    if (known) return known
    try {
      return api.runtime.agent.resolveAgentWorkspaceDir(api.config, ctx.agentId ?? "main")
    } catch {
      return undefined
    }
  }

  async function tell(event, ctx, more) {
    const key = ctx.sessionKey ?? ctx.sessionId
    latest.set(key, { session: ctx.sessionId ?? key, turn: ctx.runId ?? latest.get(key)?.turn })
    if (ctx.workspaceDir) workspaces.set(key, ctx.workspaceDir)
    const top = root(key)
    const { session, turn } = latest.get(top) ?? latest.get(key)
    const answer = await ask({
      agent: "openclaw",
      hook_event_name: event,
      session_id: session,
      subagent: top === key ? undefined : (ctx.sessionId ?? key),
      turn_id: turn,
      cwd: workspace(ctx),
      ...more,
    })
    if (typeof answer.note === "string") api.logger?.warn?.(answer.note)
    return answer
  }

  // Says what a handler returns; nothing if it fails.
  function on(name, handler) {
    const guarded = async (event, ctx) => {
      try {
        return await handler(event, ctx ?? {})
      } catch {
        return undefined
      }
    }
    api.on(name, guarded, LIMIT)
  }

  on("before_tool_call", async (event, ctx) => {
    const call = { call_id: event.toolCallId, tool_name: event.toolName, tool_input: event.params }
    const answer = await tell("before_tool_call", ctx, call)
    if (typeof answer.deny === "string") return { block: true, blockReason: answer.deny }
    if (typeof answer.ask !== "string") return
    return {
      requireApproval: {
        title: "beforehand cannot hold this call",
        description: answer.ask.slice(0, CHARS_MAX),
        severity: "critical",
        allowedDecisions: ["allow-once", "deny"],
        timeoutMs: APPROVAL_MS,
      },
    }
  })

  on("after_tool_call", async (event, ctx) => {
    const call = { call_id: event.toolCallId, tool_name: event.toolName, tool_input: event.params }
    await tell("after_tool_call", ctx, call)
  })

  on("subagent_spawned", async (event, ctx) => {
    const child = event.childSessionKey ?? ctx.childSessionKey
    if (child && ctx.requesterSessionKey) parents.set(child, ctx.requesterSessionKey)
  })

  // OpenClaw tells these two only to plugins with `hooks.allowConversationAccess`. Without them the
  // run of a call still tells its turn, but not the user's words.
  on("before_prompt_build", async (event, ctx) => {
    const isTheUsers = ctx.trigger === undefined || ctx.trigger === "user"
    const prompt = isTheUsers ? event.currentUserMessage || event.prompt : undefined
    if (prompt && !parents.has(ctx.sessionKey)) await tell("before_prompt_build", ctx, { prompt })
  })
  on("agent_end", async (_event, ctx) => {
    if (!parents.has(ctx.sessionKey)) await tell("agent_end", ctx, {})
  })

  on("session_start", async (event, ctx) => {
    await tell("session_start", { ...ctx, sessionId: event.sessionId }, {})
  })
  on("session_end", async (event, ctx) => {
    await tell("session_end", { ...ctx, sessionId: event.sessionId }, {})
  })
}

export default {
  id: "beforehand",
  name: "beforehand",
  description: "Takes a checkpoint before a tool changes your files.",
  register,
}
