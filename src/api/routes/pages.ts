// The plain pages: a first sight of a running Muster, sign-in, and accepting an invitation.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { App } from '../server.ts'

const FILES = [
  { url: '/', file: 'home.html', type: 'text/html; charset=utf-8' },
  { url: '/invitations/:token', file: 'invitation.html', type: 'text/html; charset=utf-8' },
  { url: '/assets/page.css', file: 'page.css', type: 'text/css; charset=utf-8' },
  { url: '/assets/home.js', file: 'home.js', type: 'text/javascript; charset=utf-8' },
  { url: '/assets/invitation.js', file: 'invitation.js', type: 'text/javascript; charset=utf-8' },
] as const

export function addPageRoutes(app: App): void {
  for (const { url, file, type } of FILES) {
    const content = readFileSync(new URL(`../pages/${file}`, import.meta.url))
    app.get(
      url,
      { config: { access: 'public' }, schema: { hide: true, params: z.object({}) } },
      async (_request, reply) => reply.header('cache-control', 'no-cache').type(type).send(content),
    )
  }
}
