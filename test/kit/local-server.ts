// A server for one test, on a free port, closed after the test.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Cleanup } from './process.ts'

/** Returns the server's address. If the listener throws, the connection is cut. */
export async function serveLocally(
  t: Cleanup,
  answer: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<string> {
  const server = createServer((request, response) => {
    const answered = (async () => answer(request, response))()
    answered.catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    const closed = new Promise((resolve) => server.close(resolve))
    // After `close`, so that no connection can be made in between.
    server.closeAllConnections()
    await closed
  })
  // A server that listens on TCP has an address and a port.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
