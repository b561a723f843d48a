// An app module: tools of your own for agents. Start Muster with it:
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
      description: 'Rolls dice and answers what they show.',
      input: z.object({ count: z.int().min(1).max(10), sides: z.int().min(2).max(100).default(6) }),
      effect: 'readonly',
      execute: ({ count, sides }) => Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides)),
    },
    book_table: {
      description: 'Books a table in the restaurant and answers with the number of the booking.',
      input: z.object({ name: z.string(), guests: z.int().min(1).max(20) }),
      // The same key twice is one booking: after a crash the call is made again, and nobody gets two tables.
      effect: 'keyed',
      execute: ({ name, guests }, { key, log }) => {
        if (!bookings.has(key)) bookings.set(key, `${name}, ${guests} guests`)
        log.info({ name, guests }, 'a table was booked')
        return { booking: [...bookings.keys()].indexOf(key) + 1 }
      },
    },
  },
})
