import type { Config } from './config.ts'
import { configuredAddresses } from './running-address.ts'
import type { Terminal } from './terminal.ts'
import { version } from './version.ts'

/** The public address serves the pages and the agent-service behind them. */
const hasPages = ({ serve }: Config): boolean => serve !== 'prompts' && serve !== 'genui'

/** The lines that are shown when the start is complete. `rows` describe this process. */
export function banner({
  config,
  terminal,
  rows,
  hint,
}: {
  config: Config
  terminal: Terminal
  rows: readonly [name: string, text: string][]
  hint: string
}): string {
  const row = (name: string, text: string): string => `  ${terminal.paint('dim', name.padEnd(9))}${text}`
  const seconds = (performance.now() / 1_000).toFixed(1)
  const service = config.serve === 'all' ? '' : ` as ${config.serve}`
  return [
    '',
    `  ${terminal.paint('bold', `Muster ${version}`)} is running${service} ${terminal.paint('dim', `(ready in ${seconds} s)`)}`,
    '',
    row('Address', hasPages(config) ? config.publicUrl.origin : configuredAddresses(config).listen),
    ...rows.map(([name, text]) => row(name, text)),
    '',
    `  ${terminal.paint('dim', `Stop with Ctrl-C. ${hint}`.trim())}`,
    '',
  ].join('\n')
}
