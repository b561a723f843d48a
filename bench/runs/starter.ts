// The other process of the latency bench: it starts runs as the API does, and sends the bare signal for the comparison.
// Each write carries the instant before it; the clock of hrtime is the same for all processes of a machine.
import { createPool } from '../../src/db/pool.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { createRunStarter } from '../../src/runs/run-starter.ts'
import { answerQuestions } from '../kit/side.ts'
import { POOL_SIZE } from './bench-worker.ts'

export type StarterQuestion = { do: 'run'; projectId: string; agentId: string } | { do: 'signal' }

const SIGNAL = {
  name: 'signal',
  text: `with sent as (insert into public.signals (sent_at) values ($1) returning id)
    select pg_notify('bench_signal', id::text) from sent`,
}
const [url = ''] = process.argv.slice(2)
const pool = createPool({ url, max: POOL_SIZE, log: silentLog })
const starter = createRunStarter(pool, { isAnnounced: true })

answerQuestions<StarterQuestion>(async (question) => {
  const now = String(process.hrtime.bigint())
  if (question.do === 'signal') {
    await pool.query(SIGNAL, [now])
    return null
  }
  const { id } = await starter.start(question.projectId, question.agentId, { input: now, trigger: { type: 'manual' } })
  return id
})
