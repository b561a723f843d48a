// The other process of the arrival bench: it makes tasks like a process that only serves requests, and writes the bare
// row for the comparison. Each write carries the instant before it.
import { createPool } from '../../src/db/pool.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { systemActor } from '../../src/kernel/principal.ts'
import { createTask } from '../../src/tasks/tasks.ts'
import { answerQuestions } from '../kit/side.ts'
import { POOL_SIZE } from '../runs/bench-worker.ts'

export type GiverQuestion = { do: 'task'; projectId: string; agentId: string } | { do: 'row' }

const ROW = {
  name: 'row',
  text: `with sent as (insert into public.bare_tasks (sent_at) values ($1) returning id)
    select pg_notify('bench_task', id::text) from sent`,
}
const [url = ''] = process.argv.slice(2)
const pool = createPool({ url, max: POOL_SIZE, log: silentLog })

answerQuestions<GiverQuestion>(async (question) => {
  const now = String(process.hrtime.bigint())
  if (question.do === 'row') {
    await pool.query(ROW, [now])
    return null
  }
  const input = { title: now, assigned_to: question.agentId }
  const task = await createTask(pool, question.projectId, input, { actor: systemActor, isAnnounced: true })
  return task.id
})
