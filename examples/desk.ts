// A support desk: an agent that looks an order up, gives the money back and tells the customer. Start Muster with it:
//
//   MUSTER_DATA_DIR=.muster-desk MUSTER_DEMO=off MUSTER_APP=examples/desk.ts npm start
//
// Then ask it: MUSTER_DATA_DIR=.muster-desk muster run Desk "Refund order A-1". Stop the model, kill the server, cancel
// the run and resume it: the file desk-ledger.jsonl has each refund once.
import { appendFileSync } from 'node:fs'
import { defineApp, defineFlow } from 'muster-agents'
import { z } from 'zod'

const LEDGER = process.env.DESK_LEDGER ?? 'desk-ledger.jsonl'

const orders: Record<string, { customer: string; total: number }> = {
  'A-1': { customer: 'ada@example.com', total: 40 },
  'A-2': { customer: 'grace@example.com', total: 25 },
}

/** A real desk would call a bank and a mail server here. */
function record(entry: Record<string, unknown>): void {
  appendFileSync(LEDGER, `${JSON.stringify({ ...entry, at: new Date().toISOString() })}\n`)
}

const desk = {
  role: 'Answers customers and gives money back.',
  prompt: 'Look the order up, refund it once, and write the customer a short mail about it.',
  tools: ['find_order', 'refund', 'send_mail'],
}

export default defineApp({
  project: 'Support desk',
  tools: {
    find_order: {
      description: 'Returns the customer and the total of an order.',
      input: z.object({ order: z.string() }),
      effect: 'readonly',
      execute: ({ order }) => orders[order] ?? { customer: `${order}@example.com`, total: 10 },
    },
    refund: {
      description: 'Gives the money of an order back.',
      input: z.object({ order: z.string(), amount: z.number().positive() }),
      // The bank does not know our keys: a refund must not be made twice, and a person decides where that is unclear.
      effect: 'unsafe',
      execute: ({ order, amount }, { key }) => {
        record({ tool: 'refund', order, amount, key })
        return { refunded: amount }
      },
    },
    send_mail: {
      description: 'Sends a mail to a customer.',
      input: z.object({ to: z.string(), text: z.string() }),
      // The mail server sends one mail for each key, however often it is asked.
      effect: 'keyed',
      execute: ({ to, text }, { key }) => {
        record({ tool: 'send_mail', to, text, key })
        return { sent: true }
      },
    },
  },
  agents: [
    { name: 'Desk', ...desk },
    { name: 'Careful desk', ...desk, require_approval: ['refund'] },
  ],
  flows: [
    {
      name: 'refund',
      root: defineFlow({
        type: 'task',
        id: 'desk',
        agent: 'Desk',
        input: '{{input}}',
        retry: { max_retries: 2, backoff: 100 },
      }),
    },
  ],
})
