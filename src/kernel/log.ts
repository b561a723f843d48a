/** The logger that lower layers need: one sentence, ids as fields. pino's loggers satisfy this type. */
export type LogFields = Readonly<Record<string, unknown>>

export interface Log {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
}

const ignore = (): void => {}

export const silentLog: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore }
