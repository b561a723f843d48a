import { createLogger, type Logger } from '../observe/logger.ts'
import type { Config } from './config.ts'
import type { Terminal } from './terminal.ts'

/** The log of a process, on stderr. It knows the terminal, so that no line is written behind the progress sentence. */
export function createProcessLog(config: Config, terminal: Terminal): Logger {
  return createLogger({
    level: config.logLevel,
    pretty: process.stderr.isTTY === true,
    destination: {
      write: (line: string) => {
        terminal.clearProgress()
        return process.stderr.write(line)
      },
    },
  })
}
