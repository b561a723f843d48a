// Puts the commands of cli/ into the `muster` command, with their options and their help.
import { type Command, Option } from 'commander'
import type { CommandEntry } from '../cli/command.ts'
import { clientCommands } from '../cli/command-table.ts'
import { exitCodes } from '../cli/exit-codes.ts'
import { clientSettings } from './config.ts'

const EXIT_CODES = `Exit codes: 0 done, 1 the run failed, 2 wrong arguments or an unclear name, 3 no server,
  4 the server refused, 5 the run is paused, 130 Ctrl-C (the run continues).`

export function addClientCommands(program: Command): void {
  program.addHelpText('after', `\n${EXIT_CODES}`)
  for (const entry of clientCommands) addCommand(program, entry)
}

function addCommand(program: Command, { usage, summary, options = [], examples, load }: CommandEntry): void {
  const [first = '', ...rest] = usage.split(' ')
  const isBelow = /^[a-z]/.test(rest[0] ?? '')
  const parent = isBelow ? groupCalled(program, first) : program
  const made = parent
    .command(isBelow ? rest.join(' ') : usage)
    .description(summary)
    .configureHelp({ ...parent.configureHelp(), showGlobalOptions: false })
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? exitCodes.done : exitCodes.misused))
  for (const [flags, meaning] of options) made.option(flags, meaning)
  made.option('--json', usage.startsWith('follow') ? 'print each event as a line of JSON' : 'print one JSON document')
  for (const { flag, description, variable } of clientSettings)
    made.addOption(new Option(`--${flag}`, `${description} [${variable}]`))
  made.addHelpText('after', `\nExamples:\n${examples.map((example) => `  ${example}`).join('\n')}`)
  made.action(async () => {
    const values: Record<string, string | boolean | undefined> = made.opts()
    // Loaded only now, so that the other commands start no later.
    const { runClientCommand } = await import('./run-client-command.ts')
    process.exitCode = await runClientCommand(await load(), { args: made.args, options: values })
  })
}

function groupCalled(program: Command, name: string): Command {
  const known = program.commands.find((command) => command.name() === name)
  return known ?? program.command(name).description('start flows, and list their runs')
}
