// Recorded runs as cases: the task of a run is given again, and the run's outcome becomes the expectation.
import { anyOf } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import type { Expectation } from '../kernel/eval.ts'
import { type AgentRunAnswer, isSupervisor, type SystemPart } from '../kernel/supervisor.ts'
import { readRunAnswer } from '../supervisor/answer.ts'

export interface RecordedCase {
  task: string
  /** The metadata of the run's context. The context_id is left out, because a context keeps the variant it had. */
  metadata: Record<string, unknown>
  expect: Expectation
}

interface RecordedRow {
  id: string
  part: SystemPart | null
  input: unknown
  /** The number of summaries before the first answer of a person. */
  answered_after: number | null
}

const READ: PreparedSql = {
  name: 'recorded_runs',
  text: `select id, part, input, (
      select (e.data->>'summaries')::int from run_events e
      where e.run_id = r.id and e.kind = 'supervisor.answered' and e.data->>'task_id' is not null
      order by e.seq limit 1) as answered_after
    from agent_runs r where id = ${anyOf(1)} and project_id = $2`,
}

/** A case, or a problem, for each run. Runs that are not of this project's supervisor are absent. */
export async function readRecorded(
  db: Db,
  projectId: string,
  runIds: readonly string[],
): Promise<Map<string, RecordedCase | { problem: string }>> {
  if (runIds.length === 0) return new Map()
  const { rows } = await db.query<RecordedRow>(READ, [[...new Set(runIds)], projectId])
  const found = new Map<string, RecordedCase | { problem: string }>()
  for (const { id, part, input, answered_after: after } of rows) {
    if (!isSupervisor(part)) continue
    const expect = expectationOf(await readRunAnswer(db, projectId, id), after)
    found.set(id, 'problem' in expect ? expect : { task: String(input), metadata: part.context.metadata, expect })
  }
  return found
}

/**
 * No person answers in an eval, so a run that a person answered is expected to escalate at the same point. A run that
 * was stopped from outside says nothing about its system.
 */
function expectationOf(
  { result: { status, supervisor_state: state, error } }: AgentRunAnswer,
  answeredAfter: number | null,
): Required<Pick<Expectation, 'status' | 'route'>> | { problem: string } {
  const route = state.history.map(({ agent_name: name }) => name)
  if (answeredAfter !== null) return { status: 'ESCALATE', route: route.slice(0, answeredAfter) }
  if (status === 'RUNNING') return { problem: 'the run is still running' }
  if (error?.code === 'CANCELLED') return { problem: 'the run was cancelled' }
  if (error?.code === 'UNAVAILABLE') return { problem: 'a model was unavailable to the run' }
  return { status, route }
}
