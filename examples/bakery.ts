// The app module of docs/app-modules.md, which shows it whole: a function, a tool, an agent and a flow.
import { defineApp, defineFlow } from 'muster-agents'
import { z } from 'zod'

const orders = [
  { bread: 'rye', count: 10 },
  { bread: 'wheat', count: 5 },
]
const stock: Record<string, number> = { rye: 4, wheat: 7 }

// The offline model needs no key. With a real one: { provider: 'openai', name: 'gpt-4.1' }.
const model = { provider: 'offline', name: 'offline' }

export default defineApp({
  // The project is made at the first start.
  project: 'Bakery',

  // Functions are leaves of flows: they are given the arguments of their leaf, and give JSON.
  functions: {
    todays_orders: (_: unknown, { log }) => {
      log.info({ orders: orders.length }, 'the orders of today were read')
      return orders
    },
    to_bake: ({ orders, reserve }: { orders: { bread: string; count: number }[]; reserve: number }) =>
      orders.map(({ bread, count }) => ({ bread, count: Math.max(0, count + reserve - (stock[bread] ?? 0)) })),
  },

  // Tools are for agents: the model reads the description and the schema, and decides when to call.
  tools: {
    stock_of: {
      description: 'Answers how many loaves of a bread are left.',
      input: z.object({ bread: z.string().describe('The name of the bread, like rye.') }),
      effect: 'readonly',
      execute: ({ bread }) => {
        const left = stock[bread]
        if (left === undefined) throw new Error(`We do not bake ${bread}. We bake ${Object.keys(stock).join(' and ')}.`)
        return { bread, left }
      },
    },
  },

  agents: {
    Baker: {
      role: 'the head of a bakery',
      prompt: 'You write short notes for the people who bake. You look up what is left with stock_of.',
      model,
      tools: ['stock_of'],
    },
  },

  flows: {
    baking_list: defineFlow({
      type: 'sequential',
      steps: [
        { type: 'task', id: 'orders', function: 'todays_orders' },
        { type: 'task', id: 'list', function: 'to_bake', args: { orders: '{{results.orders}}', reserve: 2 } },
        {
          type: 'task',
          id: 'note',
          agent: 'Baker',
          input: 'Call stock_of {"bread": "rye"}, then write a note for the morning. The baking list: {{results.list}}',
          retry: { max_retries: 2, backoff: 1_000 },
        },
      ],
    }),
  },
})
