// The entry of the `muster` command. Half of a start is spent compiling: from the second start on, the compiled code is
// read from the data folder. The cache holds for modules that are loaded after it is enabled, so this file loads almost
// nothing itself; program.ts has the command.
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import './own-imports.ts'

const [, , command, ...args] = process.argv

// A folder that is named by a flag is known only after the flags are read: program.ts enables its cache then.
if (command === 'start' && !args.some((arg) => arg.startsWith('--data-dir'))) {
  const dataDir = process.env.MUSTER_DATA_DIR || '.muster'
  if (existsSync(dataDir)) enableCompileCache(join(dataDir, 'compile-cache'))
}

await import('./program.ts')
