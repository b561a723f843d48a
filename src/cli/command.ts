// A command of the daily kind: its usage, its help, and the file that executes it, which is loaded when it is called.
import type { ApiClient } from './client.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Screens } from './screen.ts'

export interface CommandContext extends Screens {
  client: ApiClient
  /** The project that --project or MUSTER_PROJECT names. */
  projectReference: string | null
  isJson: boolean
  /** Aborted by Ctrl-C. */
  signal: AbortSignal
  now: () => number
  readStdin: () => Promise<string>
  /** Asks the person at the terminal; null in a pipe, where nobody answers. */
  askYesNo: ((question: string) => Promise<boolean>) | null
  readFile: (path: string) => Promise<string>
}

/** Arguments in the order of the usage, and the values of options by their names. */
export interface Given {
  args: readonly string[]
  options: Readonly<Record<string, string | boolean | undefined>>
}

export type Execute = (context: CommandContext, given: Given) => Promise<ExitCode>

export interface CommandEntry {
  /** `run <agent> [input]`; a name of two words is a command below the first word. */
  usage: string
  summary: string
  options?: readonly (readonly [flags: string, meaning: string])[]
  /** Lines of the help, each a command with its purpose. */
  examples: readonly string[]
  load: () => Promise<Execute>
}
