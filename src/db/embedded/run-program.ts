import { type SpawnOptions, spawn } from 'node:child_process'
import { isCode } from './private-file.ts'
import type { RunAs } from './run-as.ts'

/**
 * PostgreSQL's programs start as the right user, from a folder anybody may enter, and without Muster's environment,
 * which holds secrets and may hold PG* variables.
 */
export function spawnOptions(runAs: RunAs | null): SpawnOptions {
  const user = runAs === null ? {} : { uid: runAs.uid, gid: runAs.gid }
  return { cwd: '/', env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }, ...user }
}

/** Runs a program to its end, also when the signal cuts it short. Throws the program's first error message. */
export async function runProgram(
  file: string,
  args: string[],
  runAs: RunAs | null,
  signal: AbortSignal,
): Promise<void> {
  const child = spawn(file, args, { ...spawnOptions(runAs), signal, stdio: ['ignore', 'ignore', 'pipe'] })
  let complaints = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints = (complaints + text).slice(-4_000)
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) => {
      if (child.pid === undefined) reject(cannotRun(file, error))
    })
    child.once('close', resolve)
  })
  signal.throwIfAborted()
  if (code !== 0) throw new Error(firstError(complaints) ?? `${file} ended with ${code ?? 'a signal'}`)
}

export function cannotRun(file: string, error: Error): Error {
  // The file exists; the loader that it names is missing.
  const why = isCode(error, 'ENOENT') ? 'this system lacks glibc (Alpine?)' : error.message
  return new Error(`PostgreSQL (${file}) cannot be run here, ${why}: set DATABASE_URL to a server of your own.`, {
    cause: error,
  })
}

function firstError(complaints: string): string | null {
  const lines = complaints.split('\n').map((line) => line.trim())
  const line = lines.find((text) => /error|FATAL|PANIC/.test(text)) ?? lines.find((text) => text !== '')
  return line?.replace(/^.*?(error|FATAL|PANIC): +/, '') ?? null
}
