
// The program that npm installed with this plugin; without it nothing is started.
function installed() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`beforehand-${process.platform}-${process.arch}/package.json`)
    return join(dirname(manifest), "bin", "beforehand")
  } catch {
    return undefined
  }
}

// What is answered in place of the program where there is none: a word about it when a session begins.
function missing(payload) {
  if (payload.hook_event_name !== "session.created") return {}
  const name = `beforehand-${process.platform}-${process.arch}`
  return { note: `no checkpoints are taken: the package ${name} is missing; install beforehand again without --omit=optional` }
}

// The slash commands; one of the user's own stays.
async function config(settings) {
  // In a template this path stands within backticks and quotes.
  if (!BINARY || /['`$\\]/.test(BINARY)) return
  settings.command ??= {}
  for (const [name, { description, template }] of Object.entries(COMMANDS)) {
    settings.command[name] ??= { description, template: template.replace("!`beforehand ", () => `!\`'${BINARY}' `) }
  }
}
