// The app module of the bench: a tool and a function that hang for a minute, and a function that returns at once.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp } from '../../src/kernel/app.ts'

const HANGS_MS = 60_000

// biome-ignore lint/style/noDefaultExport: an app module is one
export default defineApp({
  tools: {
    hang: {
      description: 'Hangs for a minute.',
      input: { type: 'object', properties: {}, additionalProperties: false },
      effect: 'readonly',
      timeout: 2 * HANGS_MS,
      execute: (_args, { signal }) => sleep(HANGS_MS, 'done', { signal }),
    },
  },
  functions: {
    hang: (_input: unknown, { signal }) => sleep(HANGS_MS, 'done', { signal }),
    answer: () => 'done',
  },
})
