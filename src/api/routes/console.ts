// The console: static files that vite has built from ui/ when Muster was installed.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { App } from '../http/app.ts'
import { nothingHere } from '../http/not-found.ts'

const BUILT = new URL('../../../ui/dist/', import.meta.url)

const TYPES: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

interface Asset {
  type: string
  content: Buffer
  gzip: Buffer | null
}

export interface Console {
  index: Buffer
  assets: ReadonlyMap<string, Asset>
}

/** The built console, or null if it was not built. The files are few and small, so all of them are kept. */
export function readConsole(folder: URL = BUILT): Console | null {
  const index = new URL('index.html', folder)
  if (!existsSync(index)) return null
  const assets = new Map<string, Asset>()
  const read = (name: string): Buffer => readFileSync(new URL(`assets/${name}`, folder))
  const names = new Set(readdirSync(new URL('assets/', folder)))
  for (const name of names) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    assets.set(name, { type, content: read(name), gzip: names.has(`${name}.gz`) ? read(`${name}.gz`) : null })
  }
  return { index: readFileSync(index), assets }
}

/** Pages of the console, by address. The console itself says which of the addresses below them are unknown. */
const PAGES = ['/', '/account', '/projects/*', '/invitations/*', '/resets/*'] as const
/** Programs ask for these addresses. An unknown address among them is answered with an error, not with a page. */
const NO_PAGE = /^\/(api|v1|hooks|assets|docs|sign-in)(\/|$)/

const NOT_BUILT = 'The console is not built. Run `npm run prepare` where Muster is installed, then start it again.\n'

export function addConsoleRoutes(app: App, built = readConsole()): void {
  const options = { config: { access: 'public' as const }, schema: { hide: true, params: z.looseObject({}) } }
  for (const url of PAGES) app.get(url, options, async (_request, reply) => sendPage(reply, built))
  app.get('/assets/*', options, async (request, reply) => sendAsset(request, reply, built))
  // A person who mistypes an address sees the console, which says so; a program gets 404.
  app.addHook('onRequest', async (request, reply) => {
    if (request.is404 && wantsPage(request)) return sendPage(reply, built)
  })
}

const wantsPage = ({ method, url, headers }: FastifyRequest): boolean =>
  method === 'GET' && !NO_PAGE.test(url) && /\btext\/html\b/.test(headers.accept ?? '')

function sendPage(reply: FastifyReply, built: Console | null): FastifyReply {
  reply.header('cache-control', 'no-cache')
  if (!built) return reply.code(503).type('text/plain; charset=utf-8').send(NOT_BUILT)
  return reply.type('text/html; charset=utf-8').send(built.index)
}

/** The name of an asset has a hash of its content, so browsers keep it for good. */
function sendAsset(request: FastifyRequest, reply: FastifyReply, built: Console | null): FastifyReply {
  const { '*': name = '' } = request.params as { '*'?: string } // the wildcard of the route
  const asset = built?.assets.get(name)
  if (!asset) throw nothingHere()
  reply.header('cache-control', 'public, max-age=31536000, immutable').type(asset.type)
  if (asset.gzip) reply.header('vary', 'accept-encoding')
  if (!asset.gzip || !/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(asset.content)
  return reply.header('content-encoding', 'gzip').send(asset.gzip)
}
