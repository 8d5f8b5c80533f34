// Hands a payload to beforehand. Every plugin has this function: `cargo test --lib written` compares them,
// and writes them with BEFOREHAND_UPDATE=1.
function ask(payload) {
  return new Promise((resolve) => {
    let output = ""
    let child
    try {
      child = spawn(BINARY, ["hook", "--agent", "AGENT"], {
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
