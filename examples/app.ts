// An app module: tools of your own for agents, and middleware around everything they do. Start Muster with it:
//
//   MUSTER_APP=examples/app.ts npm start
//
// and name the tools in an agent: "tools": ["roll_dice", "book_table"].
import { defineApp } from 'muster-agents'
import { z } from 'zod'

const bookings = new Map<string, string>()

export default defineApp({
  tools: {
    roll_dice: {
      description: 'Rolls dice and returns the numbers that they show.',
      input: z.object({ count: z.int().min(1).max(10), sides: z.int().min(2).max(100).default(6) }),
      effect: 'readonly',
      execute: ({ count, sides }) => Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)),
    },
    book_table: {
      description: 'Books a table in the restaurant and returns the number of the booking.',
      input: z.object({ name: z.string(), guests: z.int().min(1).max(20) }),
      // A key that comes twice gives one booking: after a crash the call is made again, and no guest gets two tables.
      effect: 'keyed',
      execute: ({ name, guests }, { key, log }) => {
        if (!bookings.has(key)) bookings.set(key, `${name}, ${guests} guests`)
        log.info({ name, guests }, 'a table was booked')
        return { booking: [...bookings.keys()].indexOf(key) + 1 }
      },
    },
  },
  // Middleware runs for every run, in this order. A hook gets a copy of the data; only its return value counts.
  middleware: [
    {
      // This rule holds whatever a prompt says.
      beforeTool: ({ call }) =>
        call.name === 'book_table' && Number(call.args.guests) > 12
          ? { result: { error: 'Parties of more than 12 are booked by phone.' }, is_error: true }
          : undefined,
    },
    {
      // A card number in a tool's result reaches no model; a card number in a model's answer reaches no journal and no
      // stream.
      afterTool: ({ result }) =>
        JSON.parse(JSON.stringify(result), (_, value) => (typeof value === 'string' ? withoutCards(value) : value)),
      afterModel: ({ response }) => ({ ...response, text: withoutCards(response.text) }),
    },
  ],
})

function withoutCards(text: string): string {
  return text.replace(/\b\d(?:[ -]?\d){12,18}\b/g, '[card number]')
}
