// The `muster` command: the names of its subcommands and the way they fail.
import { existsSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { addClientCommands } from './client-commands.ts'
import { type Config, ConfigError, configOfProcess, settings, silenceLibraries } from './config.ts'
import { createTerminal } from './terminal.ts'
import { variablesOf } from './variables-of.ts'
import { version } from './version.ts'

/** Every command takes every setting; the help of a command shows the settings it is likely to need. */
const OF_EVERY_COMMAND = ['MUSTER_DATA_DIR', 'DATABASE_URL']

const terminal = createTerminal()
const errors = createTerminal(process.stderr)

const program = new Command('muster')
  .description('Runs teams of AI agents that people can trust with real work.')
  .version(version)
  .showHelpAfterError('Run it with --help to see all commands.')
  .configureHelp({ showGlobalOptions: true, subcommandTerm: termOf })

program.commandsGroup('Every day:')
addClientCommands(program)
program.commandsGroup('The server:').helpCommand('help [command]', 'show the help of a command')
command('start', 'start the server (npm start does the same)').action(
  run(async (config) => {
    // Until the server has set its own handlers there is nothing to stop.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(0))
    keepCompiled(config)
    silenceLibraries()
    if (config.serve === 'ui') await (await import('./start-ui.ts')).startUi(config, terminal)
    else await (await import('./start.ts')).start(config, terminal)
    // The cache is written early, because a server that is killed could not write it at its end.
    flushCompileCache()
  }),
)
command('migrate', 'bring the database to this release, without starting the server').action(
  run(async (config) => (await import('./commands.ts')).migrateCommand(config, terminal)),
)
command('status', 'say whether Muster runs here and whether it is ready').action(
  run(async (config) => (await import('./commands.ts')).statusCommand(config, terminal)),
)
command('doctor', 'check the installation and say what to fix').action(
  run(async (config) => (await import('./doctor.ts')).doctorCommand(config, terminal)),
)
command('keys', 'show the admin token, or make a new sign-in link')
  .argument('<what>', 'admin: the token for scripts; link: a one-time sign-in link')
  .action((what: string, flags: Flags) =>
    run(async (config) => (await import('./commands.ts')).keysCommand(config, what, terminal))(flags),
  )
command('backup', 'write everything to one file, also while the server runs')
  .argument('<file>', 'the file to write; it must not exist yet')
  .option('--without-secrets', 'leave out the generated secret key and admin token')
  .action((file: string, flags: Flags) => {
    const withoutSecrets = flags.withoutSecrets !== undefined
    return run(async (config) =>
      (await import('./backup.ts')).backupCommand(config, file, terminal, { withoutSecrets }),
    )(flags)
  })
command('restore', 'fill an empty data folder or database from a backup')
  .argument('<file>', 'a file that muster backup wrote')
  .action((file: string, flags: Flags) =>
    run(async (config) => (await import('./backup.ts')).restoreCommand(config, file, terminal))(flags),
  )

await program.parseAsync()

/** The name and the arguments; every command has options, which its own help shows. */
function termOf(shown: Command): string {
  const args = shown.registeredArguments.map((argument) => {
    const name = `${argument.name()}${argument.variadic ? '...' : ''}`
    return argument.required ? `<${name}>` : `[${name}]`
  })
  return [shown.name(), ...args].join(' ')
}

/** Does nothing if muster.ts has enabled the cache. */
function keepCompiled(config: Config): void {
  if (existsSync(config.dataDir)) enableCompileCache(join(config.dataDir, 'compile-cache'))
}

type Flags = Record<string, string | undefined>

function command(name: string, description: string): Command {
  const made = program.command(name).description(description)
  for (const { flag, description: meaning, variable } of settings) {
    const isShown = name === 'start' || OF_EVERY_COMMAND.includes(variable)
    made.addOption(new Option(`--${flag}`, `${meaning} [${variable}]`).hideHelp(!isShown))
  }
  return made
}

/**
 * Flags win over the environment. Failures are one sentence and a non-zero exit. The exit is explicit: a connection
 * that a failed start left open would keep the process alive.
 */
function run(action: (config: Config) => Promise<void>): (flags: Flags) => Promise<void> {
  return async (flags) => {
    try {
      await action(configOfProcess(variablesOf(flags, settings)))
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      errors.print(`${errors.paint('red', error instanceof ConfigError ? 'Configuration:' : 'muster:')} ${message}`)
      process.exit(1)
    }
  }
}
