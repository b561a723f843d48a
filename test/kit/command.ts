// The daily commands as people use them: the real command in a process of its own, in a pipe or on a terminal.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type Cleanup, type Muster, repository, runMuster, spawnMuster } from './process.ts'

export interface Said {
  code: number | null
  stdout: string
  stderr: string
}

export interface CommandKit {
  /** Runs a command to its end, in a pipe. */
  run(args: readonly string[], env?: Record<string, string>): Promise<Said>
  /** Starts a command without waiting for its end. */
  begin(t: Cleanup, args: readonly string[], env?: Record<string, string>): Promise<Muster>
  /** Runs a command on a terminal of this width; everything that it shows is on stdout. */
  onTerminal(columns: number, args: readonly string[], env?: Record<string, string>): Promise<Said>
}

/** A terminal is made by `script` of util-linux. */
export const noTerminal =
  process.platform === 'linux' && existsSync('/usr/bin/script') ? false : 'there is no script command'

/** `given` is the environment of every command; the server is found by its data folder. */
export function createCommandKit(t: Cleanup, server: () => Muster, given: () => Record<string, string>): CommandKit {
  const options = (env: Record<string, string>) => ({ dataDir: server().dataDir, env: { ...given(), ...env } })
  return {
    run: async (args, env = {}) => {
      const { code, stdout, stderr } = await runMuster(t, args, options(env))
      return { code, stdout, stderr }
    },
    begin: (ofTest, args, env = {}) => spawnMuster(ofTest, args, options(env)),
    onTerminal: async (columns, args, env = {}) => {
      const words = [process.execPath, `${repository}src/bin/muster.ts`, ...args].map(quoted).join(' ')
      const command = ['/usr/bin/script', '-qec', `stty cols ${columns}; ${words}`, '/dev/null']
      const ofTerminal = { TERM: 'xterm-256color', ...env }
      const { code, stdout, stderr } = await runMuster(t, [], { ...options(ofTerminal), command })
      return { code, stdout, stderr }
    },
  }
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that a terminal obeys
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

/** Fails if the text could do anything to a terminal but appear on it. */
export function requirePlain({ stdout, stderr }: Said): void {
  assert.doesNotMatch(stdout, CONTROL, JSON.stringify(stdout))
  assert.doesNotMatch(stderr, CONTROL, JSON.stringify(stderr))
}
