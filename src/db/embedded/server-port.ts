import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'
import { readIfPresent, writePrivateFile } from './private-file.ts'

// Ports from 32768 on are given to outgoing connections, which could take the server's port during a restart.
const lowest = 15_500
const highest = 32_500

/** The remembered port if it is free, else another one. */
export async function choosePort(file: string): Promise<number> {
  const remembered = Number((await readIfPresent(file))?.trim())
  if (Number.isInteger(remembered) && remembered > 0 && remembered < 65_536 && (await isFree(remembered))) {
    return remembered
  }
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(lowest, highest)
    if (await isFree(port)) return port
  }
  throw new Error(`No free port between ${lowest} and ${highest} was found on 127.0.0.1 for the database.`)
}

export async function rememberPort(file: string, port: number): Promise<void> {
  const text = `${port}\n`
  if ((await readIfPresent(file)) !== text) await writePrivateFile(file, text)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
