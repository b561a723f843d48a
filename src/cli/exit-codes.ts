/** The exit codes of the commands that talk to a server. `muster --help` and the README list them. */
export const exitCodes = {
  done: 0,
  /** The run, or the flow run, failed or was cancelled. */
  failed: 1,
  /** The arguments are wrong, or a name is unknown or ambiguous. */
  misused: 2,
  /** No server answers. */
  unreachable: 3,
  /** The server refused: the key, the rights, or the state of the thing. */
  refused: 4,
  /** The run is paused: somebody must act. */
  paused: 5,
  /** Ctrl-C, as shells count it. */
  interrupted: 130,
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** Ends a command with one sentence, and with lines below it that help. */
export class CommandFailure extends Error {
  readonly exitCode: ExitCode
  readonly lines: readonly string[]
  /** The code of the server's error, or one of our own in the same style. */
  readonly code: string
  readonly details: unknown

  constructor(
    exitCode: ExitCode,
    message: string,
    { lines = [], code, details = null }: { lines?: readonly string[]; code: string; details?: unknown },
  ) {
    super(message)
    this.name = 'CommandFailure'
    this.exitCode = exitCode
    this.lines = lines
    this.code = code
    this.details = details
  }
}

export const misused = (message: string, lines: readonly string[] = []): CommandFailure =>
  new CommandFailure(exitCodes.misused, message, { lines, code: 'WRONG_ARGUMENT' })

export const unreachable = (message: string): CommandFailure =>
  new CommandFailure(exitCodes.unreachable, message, { code: 'NO_SERVER' })
