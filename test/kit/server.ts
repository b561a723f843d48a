// The PostgreSQL that tests run on. `npm test` starts one for all files and names it in MUSTER_TEST_SERVER_URL, which
// may also be set by hand for an external server; a file that is run alone starts its own server and stops it at the
// end.
import { atEnd } from './at-end.ts'
import { startTestServer } from './test-server.ts'

let url: Promise<string> | null = null

export function testServerUrl(): Promise<string> {
  url ??= process.env.MUSTER_TEST_SERVER_URL ? Promise.resolve(process.env.MUSTER_TEST_SERVER_URL) : startOwn()
  return url
}

async function startOwn(): Promise<string> {
  const server = await startTestServer()
  atEnd(() => server.stop())
  return server.url
}
