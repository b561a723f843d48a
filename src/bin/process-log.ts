import { createLogger, type Logger } from '../observe/logger.ts'
import { createPrettifier } from '../observe/prettify.ts'
import type { Config } from './config.ts'
import type { Terminal } from './terminal.ts'

/** The log of a process, on stderr. It knows the terminal, so that no line is written behind the progress sentence. */
export async function createProcessLog(config: Config, terminal: Terminal): Promise<Logger> {
  return createLogger({
    level: config.logLevel,
    prettify: process.stderr.isTTY ? await createPrettifier() : null,
    destination: {
      write: (line: string) => {
        terminal.clearProgress()
        return process.stderr.write(line)
      },
    },
  })
}
