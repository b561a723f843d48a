import type { Log, LogFields } from '../../src/kernel/log.ts'

export interface LogLine {
  level: keyof Log
  fields: LogFields
  message: string
}

/** A log that tests read. */
export function recordLog(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: keyof Log) => (fields: LogFields, message: string) => void lines.push({ level, fields, message })
  return { log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }, lines }
}
