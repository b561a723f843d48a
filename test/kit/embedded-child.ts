import { existsSync, writeFileSync, writeSync } from 'node:fs'
import { claimDataFolder } from '../../src/db/embedded/data-folder.ts'
import { createEmbeddedServer } from '../../src/db/embedded/embedded-server.ts'
import { silentLog } from '../../src/kernel/log.ts'

// A process of its own that claims a data folder and runs the embedded server, to be killed or run as another user.
// Argument: {"dataDir", "relocationDir"?, "packaged"?, "claimOnly"?, "gate"?} as JSON. Prints one line of JSON when it
// is up or has failed, ends the server on SIGTERM, and ends with its standard input, so that it never outlives a test.
// With a gate the process waits until that file exists, so that many processes can begin at the same moment.

const options = JSON.parse(process.argv[2] ?? '{}')
const tell = (line: object): void => {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

if (options.gate) {
  writeFileSync(`${options.gate}.${process.pid}`, '')
  while (!existsSync(options.gate));
}

try {
  const startedAt = performance.now()
  const claim = await claimDataFolder(options.dataDir)
  const server = createEmbeddedServer({ ...options, log: silentLog })
  const end = async (): Promise<void> => {
    await server.stop()
    await claim.release()
    process.exit(0)
  }
  process.on('SIGTERM', end)
  process.stdin.on('end', end).resume()
  if (options.claimOnly) tell({ outcome: 'claimed' })
  else {
    const outcome = await server.start()
    tell({ outcome, url: server.url(), ms: Math.round(performance.now() - startedAt), uid: process.getuid?.() })
  }
} catch (error) {
  tell({ error: error instanceof Error ? error.message : String(error) })
  process.exit(1)
}
