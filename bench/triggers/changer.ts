// The process that changes objects: by the write path of the product, and by the bare statements for the comparison.
import { createPool } from '../../src/db/pool.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import { byPerson } from '../../src/objects/author.ts'
import { objectWords } from '../../src/objects/object-words.ts'
import { createObjectWriter } from '../../src/objects/write-objects.ts'
import { reactions } from '../../src/triggers/reactions.ts'
import { timeInFlight } from '../kit/rounds.ts'
import { answerQuestions } from '../kit/side.ts'
import { POOL_SIZE } from '../runs/bench-worker.ts'

export type ChangerQuestion =
  /** Makes objects at a steady rate, each of the next type, with a bare signal between two objects. */
  | { do: 'events'; projectId: string; count: number; everyMs: number; types: number }
  /** Creates and then updates objects, this many at once. Returns the seconds that it took. */
  | { do: 'write'; projectId: string; count: number; inFlight: number }
  | { do: 'bare'; projectId: string; count: number; inFlight: number }

const [url = ''] = process.argv.slice(2)
const pool = createPool({ url, max: POOL_SIZE, log: silentLog, connectTimeoutMs: 30_000 })
const writer = createObjectWriter({ pool, setsOff: reactions({ isAnnounced: true }) })
const author = byPerson(systemActor)

const SIGNAL = {
  name: 'signal',
  text: `with sent as (insert into public.signals (sent_at) values ($1) returning id)
    select pg_notify('bench_signal', id::text) from sent`,
}
const INSERT = {
  name: 'bare_insert',
  text: `insert into public.bare_objects (id, project_id, type, key, properties, version, actor_type, actor_id, words,
      created_at, updated_at)
    values ($1, $2, $3, $4, $5, 1, 'user', null, array_to_tsvector($6::text[]), now(), now())`,
}
const UPDATE = {
  name: 'bare_update',
  text: `update public.bare_objects set properties = $2, words = array_to_tsvector($3::text[]), version = version + 1,
    updated_at = now() where id = $1`,
}

const propertiesOf = (index: number, state: string) => ({
  name: `Object number ${index}`,
  state,
  notes: 'What somebody wrote about it, at about the length that such notes have.',
  amount: index * 17,
})

answerQuestions<ChangerQuestion>(async (question) => {
  const { projectId, count } = question
  if (question.do === 'events') return sendEvents(question)
  const keys = Array.from({ length: count }, () => newId())
  return timeInFlight(count, question.inFlight, async (index) => {
    const key = keys[index] ?? ''
    const before = propertiesOf(index, 'new')
    const after = propertiesOf(index, 'done')
    if (question.do === 'bare') {
      await pool.query(INSERT, [key, projectId, 'Written', key, JSON.stringify(before), objectWords(key, before)])
      await pool.query(UPDATE, [key, JSON.stringify(after), objectWords(key, after)])
      return
    }
    const change = { op: 'create', type: 'Written', key, properties: before } as const
    const made = await writer.write({ projectId, change, author })
    if (made.kind !== 'written') throw new Error(`an object was not created: ${made.kind}`)
    const { id } = made.object
    await writer.write({ projectId, change: { op: 'update', id, properties: after, expectedVersion: null }, author })
  })
})

async function sendEvents({
  projectId,
  count,
  everyMs,
  types,
}: Extract<ChangerQuestion, { do: 'events' }>): Promise<null> {
  const sent: Promise<unknown>[] = []
  const began = performance.now()
  for (let index = 0; index < 2 * count; index++) {
    const due = began + (index * everyMs) / 2
    while (performance.now() < due)
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())))
    const now = String(process.hrtime.bigint())
    if (index % 2 === 1) sent.push(pool.query(SIGNAL, [now]))
    else {
      const change = {
        op: 'create',
        type: `Type ${(index / 2) % types}`,
        key: null,
        properties: { sent_at: now },
      } as const
      sent.push(writer.write({ projectId, change, author }))
    }
  }
  await Promise.all(sent)
  return null
}
