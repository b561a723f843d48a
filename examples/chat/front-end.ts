// The server of a front end: it serves the page, and passes chats on to Muster with the key of a project, which the
// browser never sees. MUSTER_KEY=<key of a member> node examples/chat/front-end.ts, then open http://127.0.0.1:3000.
// MUSTER_URL is the address of Muster (http://127.0.0.1:8080), PORT the port of the page (3000).
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

export async function createFrontEnd({ musterUrl, key }: { musterUrl: string; key: string }): Promise<Server> {
  const script = await bundlePage()
  return createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', musterUrl)
    if (pathname === '/') return send(response, 'text/html', page())
    if (pathname === '/assets/page.js') return send(response, 'text/javascript', script)
    if (!pathname.startsWith('/api/chat')) return void response.writeHead(404).end()
    const url = new URL(pathname.replace('/api/chat', '/v1/agent/chat'), musterUrl)
    await passOn(request, response, url).catch(() => giveUp(response))
  })

  async function passOn(request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const answer = await fetch(url, {
      method: request.method ?? 'GET',
      headers: { authorization: `Bearer ${key}`, 'content-type': request.headers['content-type'] ?? '' },
      ...(request.method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {}),
      signal: gone.signal,
    })
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (!answer.body) return void response.end()
    response.flushHeaders()
    await pipeline(Readable.fromWeb(answer.body), response)
  }
}

/**
 * If the stream of an answer has begun, it is cut off; otherwise the page gets an error in the form of Muster's errors.
 */
function giveUp(response: ServerResponse): void {
  if (response.headersSent || response.closed) return void response.destroy()
  const error = { code: 'UNAVAILABLE', message: 'Muster could not be reached. Try again.' }
  response.writeHead(502, { 'content-type': 'application/json' }).end(JSON.stringify({ error }))
}

const page = (): string => `<!doctype html><html lang="en"><meta charset="utf-8"><title>A chat</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">
<style>${readFileSync(fileOf('./page.css'), 'utf8')}</style>
<script type="module" src="/assets/page.js"></script>`

const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url))

const send = (response: ServerResponse, type: string, text: string): void =>
  void response.writeHead(200, { 'content-type': `${type}; charset=utf-8` }).end(text)

async function bundlePage(): Promise<string> {
  const build = await rolldown({
    input: fileOf('./page.jsx'),
    platform: 'browser',
    logLevel: 'silent',
    transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  })
  const { output } = await build.generate({ format: 'esm', minify: true })
  await build.close()
  return output[0].code
}

if (import.meta.main) {
  const { MUSTER_KEY: key, MUSTER_URL: musterUrl = 'http://127.0.0.1:8080', PORT: port = '3000' } = process.env
  if (!key) throw new Error('Set MUSTER_KEY to the key of a project, with the role member.')
  const server = await createFrontEnd({ musterUrl, key })
  server.listen(Number(port), '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${port}\n`))
}
