// The plain pages: a first sight of a running Muster, sign-in, and accepting an invitation.
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { z } from 'zod'
import type { App } from '../server.ts'

const PAGES = [
  { url: '/', file: 'home.html' },
  { url: '/invitations/:token', file: 'invitation.html' },
  { url: '/resets/:token', file: 'reset.html' },
] as const

const ASSETS = [
  ...['page.css', 'controls.css', 'layout.css', 'panels.css', 'flows.css', 'home.js', 'invitation.js', 'reset.js'],
  ...['api.js', 'dialogs.js', 'dom.js', 'form.js', 'list.js', 'loaded.js', 'names.js', 'status.js', 'diff.js'],
  ...['account.js', 'readiness.js', 'sign-in.js'],
  ...['projects.js', 'project-panel.js', 'keys-panel.js', 'members-panel.js', 'audit-panel.js'],
  ...[
    'agents-panel.js',
    'agent-badges.js',
    'agent-buttons.js',
    'agent-form.js',
    'agent-definition.js',
    'trigger-fields.js',
  ],
  ...['agent-detail.js', 'agent-runs.js', 'processing-log.js', 'hooks-section.js'],
  ...['inbox-panel.js', 'question-card.js', 'suggestions-section.js', 'suggestion-card.js'],
  ...['objects-panel.js', 'object-detail.js'],
  ...['flows-panel.js', 'flow-card.js', 'flow-start.js', 'flow-alerts.js', 'flow-buttons.js', 'flow-names.js'],
  ...['flow-detail.js', 'flow-figures.js', 'flow-progress.js', 'flow-time.js', 'flow-tasks.js', 'task-book.js'],
  ...['flow-metrics.js', 'flow-topology.js', 'flow-outcome.js', 'flow-results.js', 'keep-fresh.js'],
] as const

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
}

export function addPageRoutes(app: App): void {
  for (const { url, file } of [...PAGES, ...ASSETS.map((file) => ({ url: `/assets/${file}`, file }))]) {
    const content = readFileSync(new URL(`../pages/${file}`, import.meta.url))
    const type = TYPES[extname(file)]
    if (type === undefined) throw new Error(`${file} has no content type`)
    app.get(
      url,
      { config: { access: 'public' }, schema: { hide: true, params: z.object({}) } },
      async (_request, reply) => reply.header('cache-control', 'no-cache').type(type).send(content),
    )
  }
}
