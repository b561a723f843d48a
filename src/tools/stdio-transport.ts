// An MCP server as a child process. The SDK's transport hands down more of the environment than PATH and kills only the
// process it started; this one starts a process group and ends the whole group.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js'
import type { ProgramStart } from './confine-programs.ts'
import { createLineReader, type LongLine } from './line-reader.ts'

export interface StdioOptions {
  program: ProgramStart
  maxMessageBytes: number
}

const STDERR_KEPT = 4_096
/** Programs print banners to the wrong stream. A program with more stray lines than this does not speak MCP. */
const MAX_STRAY_LINES = 100
const MAX_STRAY_BYTES = 65_536
const GRACE_MS = 1_000
/** A code of ours: the protocol leaves this range to implementations. */
const TOO_LONG = -32_050

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** The reason why the program ended, as a part of a sentence: "it ended with code 1". */
  ending: string | null = null
  stderr = ''

  readonly #options: StdioOptions
  #child: ChildProcessWithoutNullStreams | null = null
  #over = Promise.withResolvers<void>()
  #isOver = false
  #isAnnounced = false
  #stray = { lines: 0, bytes: 0 }
  #delivered: Promise<void> = Promise.resolve()

  constructor(options: StdioOptions) {
    this.#options = options
  }

  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  start(): Promise<void> {
    const { program, maxMessageBytes } = this.#options
    const { file, args, env, cwd, user } = program
    const child = spawn(file, [...args], { env, cwd, ...user, detached: true, shell: false, stdio: 'pipe' })
    this.#child = child
    const read = createLineReader(maxMessageBytes, {
      line: (text) => this.#onLine(text),
      longLine: (line) => this.#onLongLine(line),
    })
    child.stdout.on('data', read)
    child.stderr.on('data', (chunk: Buffer) => {
      this.stderr = (this.stderr + chunk.toString('utf8')).slice(-STDERR_KEPT)
    })
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      stream.on('error', (error) => this.onerror?.(error))
    }
    child.once('exit', (code, signal) => this.#onExit(code, signal))
    child.once('close', () => this.#end())
    return new Promise((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error: NodeJS.ErrnoException) => {
        const isUnreachable = user !== null && error.code === 'EACCES'
        const why = isUnreachable ? 'EACCES: it runs under a user of its own, who cannot reach it' : error.code
        this.ending ??= `it could not be started (${why ?? error.message})`
        this.#end()
        reject(error)
      })
    })
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin
    return new Promise((resolve, reject) => {
      if (!stdin?.writable) reject(new Error('it has ended'))
      else stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Lets the program end by itself, then asks it to end, then kills it. Resolves when the group is gone. */
  async close(): Promise<void> {
    if (this.#isOver || this.#child === null) return
    this.#child.stdin.end()
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if (await this.#isOverWithin(GRACE_MS)) return
      this.#signalGroup(signal)
    }
    await this.#over.promise
  }

  /** Ends the program at once; nothing more is sent to it or read from it. */
  kill(reason: string): void {
    this.ending ??= reason
    this.#signalGroup('SIGKILL')
    this.#announceEnd()
  }

  async #isOverWithin(ms: number): Promise<boolean> {
    const stop = new AbortController()
    const late = delay(ms, false, { signal: stop.signal }).catch(() => false)
    const isOver = await Promise.race([this.#over.promise.then(() => true), late])
    stop.abort()
    return isOver
  }

  #onLine(text: string): void {
    const line = text.trim()
    if (line === '' || this.#isAnnounced) return
    const message = parseMessage(line)
    if (message !== null) {
      this.#stray = { lines: 0, bytes: 0 }
      this.#deliver(message)
      return
    }
    this.#stray.lines += 1
    this.#stray.bytes += line.length
    const isTorn = line.startsWith('{"jsonrpc"')
    if (isTorn || this.#stray.lines > MAX_STRAY_LINES || this.#stray.bytes > MAX_STRAY_BYTES) {
      this.kill('it wrote something else than MCP to its output')
    }
  }

  /** The call whose answer was too long fails; the others go on. */
  #onLongLine({ head, tail, bytes }: LongLine): void {
    const id = /"id"\s*:\s*(\d+)\s*\}\s*$/.exec(tail)?.[1] ?? /^\s*\{[^{[]{0,60}"id"\s*:\s*(\d+)/.exec(head)?.[1]
    if (id === undefined) {
      this.kill(`it sent a message of ${bytes} bytes`)
      return
    }
    const message = `The answer has ${bytes} bytes; at most ${this.#options.maxMessageBytes} are read.`
    this.#deliver({ jsonrpc: '2.0', id: Number(id), error: { code: TOO_LONG, message } })
  }

  /**
   * Messages are delivered one after the other. The SDK handles a notification a moment later, but a response at once,
   * and forgets a call's progress with its response: of two messages that arrived together it would lose the first.
   */
  #deliver(message: JSONRPCMessage): void {
    this.#delivered = this.#delivered
      .then(() => {
        if (!this.#isAnnounced) this.onmessage?.(message)
      })
      .catch((error: Error) => this.onerror?.(error))
  }

  #onExit(code: number | null, signal: NodeJS.Signals | null): void {
    this.ending ??= signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`
    // Children of the program that are left hold its output open, and nothing would end them later.
    this.#signalGroup('SIGKILL')
    setTimeout(() => this.#end(), GRACE_MS).unref()
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#over.resolve()
    this.#announceEnd()
  }

  #announceEnd(): void {
    if (this.#isAnnounced) return
    this.#isAnnounced = true
    this.onclose?.()
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid
    if (pid === undefined || this.#isOver) return
    try {
      process.kill(-pid, signal)
    } catch {
      // No process of the group is left.
    }
  }
}

function parseMessage(line: string): JSONRPCMessage | null {
  try {
    return JSONRPCMessageSchema.parse(JSON.parse(line))
  } catch {
    return null
  }
}
