#!/usr/bin/env node
// The `muster` command as npm links it. Node runs Muster's TypeScript directly, which needs Node 24.7 or newer. npm
// installs such a Node with Muster; if an older Node runs this file, the installed Node takes over. This file is plain
// JavaScript, because an old Node must be able to read it.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const program = new URL('../src/bin/muster.ts', import.meta.url)

if (isNewEnough(process.version)) {
  import(program.href)
} else {
  const node = findNode()
  if (node === undefined) {
    fail(`Muster needs Node 24.7 or newer, and this is ${process.version}. Run "npm install", which brings one along.`)
  } else {
    handOver(node)
  }
}

/** Signals and the exit code are passed on, so that the parent process notices no difference. */
function handOver(node) {
  const child = spawn(node, [fileURLToPath(program), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.once('error', (error) => fail(`Muster could not be started with ${node}: ${error.message}`))
  child.once('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** The Node of our optional dependencies, beside us or in a folder above, in which npm puts shared packages. */
function findNode() {
  const places = [join(`node-${process.platform}-${process.arch}`, 'bin', 'node'), join('.bin', 'node')]
  return foldersAbove(here)
    .flatMap((folder) => places.map((place) => join(folder, 'node_modules', place)))
    .find((node) => existsSync(node) && isNewEnough(spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout ?? ''))
}

function foldersAbove(path) {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...foldersAbove(parent)]
}

function isNewEnough(version) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number)
  return major > 24 || (major === 24 && minor >= 7)
}

function fail(sentence) {
  process.stderr.write(`muster: ${sentence}\n`)
  process.exitCode = 1
}
