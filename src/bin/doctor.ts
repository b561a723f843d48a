// `muster doctor` checks everything that a start needs and names each fault with its remedy. It changes nothing.
import type { Config } from './config.ts'
import {
  checkBinaries,
  checkDataFolder,
  checkDisk,
  checkNode,
  checkRelocation,
  checkSecretFiles,
} from './doctor-machine.ts'
import {
  checkAddress,
  checkAgent,
  checkDatabase,
  checkPagesPort,
  checkPort,
  checkSecretStrength,
} from './doctor-service.ts'
import type { Finding } from './finding.ts'
import type { Terminal } from './terminal.ts'

type Check = (config: Config) => Promise<Finding[]>

const checks: readonly Check[] = [
  checkNode,
  checkBinaries,
  checkDataFolder,
  checkSecretFiles,
  checkRelocation,
  checkDisk,
  checkDatabase,
  checkPort,
  checkSecretStrength,
  checkAddress,
]

/** The service `ui` has no database, no secrets and no data folder. */
const checksOfPages: readonly Check[] = [checkNode, checkAgent, checkPagesPort, checkAddress]

const marks = {
  well: { sign: '✓', style: 'green' },
  look: { sign: '!', style: 'yellow' },
  mend: { sign: '✗', style: 'red' },
} as const

export async function doctorCommand(config: Config, terminal: Terminal): Promise<void> {
  const found: Finding[] = []
  for (const check of config.serve === 'ui' ? checksOfPages : checks) {
    const findings = await check(config).catch(unexpected)
    for (const { tone, text } of findings) {
      terminal.print(`${terminal.paint(marks[tone].style, marks[tone].sign)} ${text}`)
    }
    found.push(...findings)
  }
  const count = (tone: Finding['tone']): number => found.filter((finding) => finding.tone === tone).length
  const mend = count('mend')
  terminal.print()
  terminal.print(
    mend > 0
      ? `${things(mend)} to mend.`
      : count('look') > 0
        ? `It will work; ${things(count('look'))} to look at.`
        : 'All is well.',
  )
  if (mend > 0) process.exitCode = 1
}

const things = (count: number): string => `${count} ${count === 1 ? 'thing' : 'things'}`

const unexpected = (error: unknown): Finding[] => [
  { tone: 'mend', text: error instanceof Error ? error.message : String(error) },
]
