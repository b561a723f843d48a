// Logs, metrics and traces of the process. The events of a run are in its journal, not here. Log lines are JSON on
// standard output, one sentence with ids as fields. Every line passes the redactor last before it is written.

import { type LevelWithSilent, type Logger as PinoLogger, pino } from 'pino'
import type { Log } from '../kernel/log.ts'
import { toPlain } from './plain.ts'
import { createRedactor, type Redactor } from './redact.ts'

type LogLevel = LevelWithSilent

export type Logger = PinoLogger & Log & Pick<Redactor, 'registerSecret'> & { readonly redactor: Redactor }

export interface LoggerOptions {
  readonly level: LogLevel
  /** Formats a line for people at a terminal; otherwise a line is one JSON object. */
  readonly prettify?: ((line: string) => string) | null
  readonly destination?: { write(line: string): unknown }
}

export function createLogger(options: LoggerOptions): Logger {
  const redactor = createRedactor()
  const { destination = pino.destination({ fd: 1, sync: true }), prettify } = options
  const output = prettify ? { write: (line: string) => destination.write(prettify(line)) } : destination
  const logger = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        // Errors anywhere in the fields become plain data here, with their causes; JSON would turn an error into {}.
        log: (fields) => toPlain(fields) as Record<string, unknown>,
      },
      // The error is already plain; pino's own serializer would cut the causes down to text.
      serializers: { err: (plain) => plain },
      hooks: { streamWrite: (line) => redactLine(line, redactor) },
    },
    output,
  )
  return Object.assign(logger, { redactor, registerSecret: redactor.registerSecret })
}

/** Works on the finished line, because child bindings and formatted messages pass no earlier hook of pino. */
function redactLine(line: string, redactor: Redactor): string {
  try {
    return `${JSON.stringify(redactor.clean(JSON.parse(line)))}\n`
  } catch {
    return `${redactor.scrub(line.trimEnd())}\n`
  }
}
