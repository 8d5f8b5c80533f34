#!/usr/bin/env node
// Starts the program that npm installed for this machine, with everything as it was given.
//
// The program is started by its own path, so `beforehand install` writes that path, and no hook of an
// agent ever waits for Node.
"use strict"

const { spawn } = require("node:child_process")
const os = require("node:os")
const path = require("node:path")

const name = `beforehand-${process.platform}-${process.arch}`
let program
try {
  program = path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", "beforehand")
} catch {
  console.error(`error: the package ${name} is not there`)
  console.error("hint: install again without `--omit=optional`; if there is none for this machine, build beforehand with cargo")
  process.exit(1)
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" })
// A key of the terminal reaches the program as it reaches us, and only the program answers.
for (const signal of ["SIGINT", "SIGQUIT"]) process.on(signal, () => {})
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal))
child.on("error", (err) => {
  console.error(`error: ${program} cannot be run: ${err.message}`)
  process.exitCode = 126
})
child.on("exit", (code, signal) => {
  process.exitCode = signal ? 128 + os.constants.signals[signal] : code
})
