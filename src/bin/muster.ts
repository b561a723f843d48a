// The `muster` command. Each subcommand is a file of its own; this file holds only their names and the way they fail.
import { existsSync } from 'node:fs'
import { enableCompileCache, flushCompileCache } from 'node:module'
import { join } from 'node:path'
import { Command, Option } from 'commander'
import { type Config, ConfigError, readConfig, settings, silenceLibraries } from './config.ts'
import { createTerminal } from './terminal.ts'
import { version } from './version.ts'

/** Every command takes every setting; the help of a command shows the settings it is likely to need. */
const OF_EVERY_COMMAND = ['MUSTER_DATA_DIR', 'DATABASE_URL']

const terminal = createTerminal()
const errors = createTerminal(process.stderr)

const program = new Command('muster')
  .description('Runs teams of AI agents that people can trust with real work.')
  .version(version)
  .showHelpAfterError('Run it with --help to see what there is.')
  .configureHelp({ showGlobalOptions: true })

command('start', 'start the server (this is what npm start does)').action(
  run(async (config) => {
    // Before the server has set its own handlers there is nothing to take down.
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(0))
    keepCompiled(config)
    silenceLibraries(process.env)
    if (config.serve === 'ui') await (await import('./start-ui.ts')).startUi(config, terminal)
    else await (await import('./start.ts')).start(config, terminal)
    // A server that is killed could not write the cache at its end.
    flushCompileCache()
  }),
)
command('migrate', 'bring the database to this release, without starting the server').action(
  run(async (config) => (await import('./commands.ts')).migrateCommand(config, terminal)),
)
command('status', 'say whether Muster runs here and whether it is ready').action(
  run(async (config) => (await import('./commands.ts')).statusCommand(config, terminal)),
)
command('doctor', 'check the installation and say what to mend').action(
  run(async (config) => (await import('./doctor.ts')).doctorCommand(config, terminal)),
)
command('keys', 'show the admin token, or make a new sign-in link')
  .argument('<what>', 'admin: the token for scripts; link: a one-time sign-in link')
  .action((what: string, flags: Flags) =>
    run(async (config) => (await import('./commands.ts')).keysCommand(config, what, terminal))(flags),
  )
command('backup', 'write everything to one file, also while the server runs')
  .argument('<file>', 'where to write it; it must not exist yet')
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

/**
 * Half of a start is spent compiling Muster's code; from the second start on it is read compiled from the data folder.
 */
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
 * Flags win over the environment. Failures are one sentence, without a stack, and a non-zero exit. The exit is explicit:
 * a connection that a failed start left open would keep the process alive.
 */
function run(action: (config: Config) => Promise<void>): (flags: Flags) => Promise<void> {
  return async (flags) => {
    try {
      await action(readConfig({ ...process.env, ...variablesOf(flags) }))
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      errors.print(`${errors.paint('red', error instanceof ConfigError ? 'Configuration:' : 'muster:')} ${message}`)
      process.exit(1)
    }
  }
}

function variablesOf(flags: Flags): Record<string, string> {
  const given: Record<string, string> = {}
  for (const { flag, variable } of settings) {
    const name = flag.split(' ')[0] ?? ''
    const value = flags[name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())]
    if (value !== undefined) given[variable] = value
  }
  return given
}
