// Runs a command of cli/: the server it talks to, Ctrl-C, and its failure as a sentence and an exit code.
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { text } from 'node:stream/consumers'
import { createClient } from '../cli/client.ts'
import type { CommandContext, Execute, Given } from '../cli/command.ts'
import { CommandFailure, exitCodes } from '../cli/exit-codes.ts'
import { createScreens, type Screens, styled } from '../cli/screen.ts'
import { jsonText } from '../cli/visible-text.ts'
import { createEgress } from '../egress/egress.ts'
import { ConfigError, clientSettings, serverOfProcess } from './config.ts'
import { locateServer } from './locate-server.ts'
import { variablesOf } from './variables-of.ts'

/** Never throws. A failure is one sentence on the standard error; with --json it is the error as JSON. */
export async function runClientCommand(execute: Execute, given: Given): Promise<number> {
  const screens = createScreens({ out: process.stdout, notes: process.stderr })
  const isJson = given.options.json === true
  const interruption = new AbortController()
  const egress = createEgress({ allow: [] })
  endQuietlyWithReader()
  const stop = interruptOnce(interruption)
  try {
    const server = serverOfProcess(variablesOf(given.options, clientSettings))
    const { signal } = interruption
    const context: CommandContext = {
      ...screens,
      client: createClient({ locate: () => locateServer(server), fetch: egress.fetch('trusted'), signal }),
      projectReference: server.project,
      isJson,
      signal,
      now: Date.now,
      readStdin: () => text(process.stdin),
      askYesNo: process.stdin.isTTY && screens.notes.isTerminal ? (question) => askYesNo(question, signal) : null,
      readFile: (path) => readFile(path, 'utf8'),
    }
    return await execute(context, given)
  } catch (error) {
    if (interruption.signal.aborted) return exitCodes.interrupted
    return tellFailure(screens, isJson, error)
  } finally {
    stop()
    await egress.close()
  }
}

/** No answer means no. The terminal stays in its own mode, so that Ctrl-C ends the command. */
async function askYesNo(question: string, signal: AbortSignal): Promise<boolean> {
  const asking = createInterface({ input: process.stdin, output: process.stderr, terminal: false })
  const { promise: left, resolve } = Promise.withResolvers<string>()
  asking.once('close', () => resolve(''))
  try {
    return /^y(es)?$/i.test((await Promise.race([asking.question(question, { signal }), left])).trim())
  } finally {
    asking.close()
  }
}

const AT_ONCE_AFTER_MS = 1_000

/**
 * The first Ctrl-C ends the command in order, a later one at once. One Ctrl-C may come twice: from the terminal, and
 * from the process that handed over to this one (bin/muster.mjs).
 */
function interruptOnce(interruption: AbortController): () => void {
  let firstAt = 0
  const interrupt = (): void => {
    if (interruption.signal.aborted && performance.now() - firstAt > AT_ONCE_AFTER_MS)
      process.exit(exitCodes.interrupted)
    if (interruption.signal.aborted) return
    firstAt = performance.now()
    interruption.abort(new Error('Interrupted.'))
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, interrupt)
  return () => {
    for (const signal of signals) process.off(signal, interrupt)
  }
}

/** `muster runs | head -1` closes the pipe, which is no failure. */
function endQuietlyWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCodes.done)
    throw error
  })
}

function tellFailure({ notes }: Screens, isJson: boolean, error: unknown): number {
  const failure = error instanceof CommandFailure ? error : null
  const message = error instanceof Error ? error.message : String(error)
  if (isJson) {
    const code = failure?.code ?? (error instanceof ConfigError ? 'CONFIGURATION' : 'INTERNAL_ERROR')
    notes.print(jsonText({ error: { code, message, details: failure?.details ?? null } }))
  } else {
    notes.print(styled('red', error instanceof ConfigError ? 'Configuration: ' : 'muster: '), message)
    for (const line of failure?.lines ?? []) notes.print(`  ${line}`)
  }
  return failure?.exitCode ?? (error instanceof ConfigError ? exitCodes.misused : exitCodes.failed)
}
