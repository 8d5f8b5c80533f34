
// The program that npm installed with this plugin; without it nothing is started.
function installed() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`beforehand-${process.platform}-${process.arch}/package.json`)
    return join(dirname(manifest), "bin", "beforehand")
  } catch {
    return undefined
  }
}
