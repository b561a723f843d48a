import type { Db, PreparedSql } from '../db/pool.ts'
import { cutText } from '../kernel/cut-text.ts'
import type { CaseStatus, Expectation } from '../kernel/eval.ts'
import { readRunAnswer } from '../supervisor/answer.ts'
import { judgeCase } from './judge.ts'

export interface CaseOutcome {
  /** Null if there is nothing to judge. */
  passed: boolean | null
  status: CaseStatus | null
  route: readonly string[]
  output: string | null
  reason: string | null
  latency: number | null
  tokens: number | null
}

/** The most characters of an output that a result keeps. The whole output is judged, and stays with its run. */
const LONGEST_OUTPUT = 20_000

const MEASURE: PreparedSql = {
  name: 'eval_run_measure',
  text: `
    with recursive tree (id) as (
      select $1::uuid
      union all
      select n.id from tree t cross join lateral (select id from agent_runs where parent_run_id = t.id) n
    )
    select (select duration from agent_runs where id = $1) as duration, (
      select sum(r.used)::bigint from tree t cross join lateral (
        select input_tokens + output_tokens as used from agent_runs where id = t.id limit 1) r) as tokens`,
}

export async function readOutcome(
  db: Db,
  { projectId, runId, expect }: { projectId: string; runId: string; expect: Expectation },
): Promise<CaseOutcome> {
  const { result } = await readRunAnswer(db, projectId, runId)
  if (result.status === 'RUNNING') throw new Error('an ended run has no end')
  const { rows } = await db.query<{ duration: number | null; tokens: number | null }>(MEASURE, [runId])
  const end = {
    status: result.status,
    output: result.output?.content ?? null,
    route: result.supervisor_state.history.map(({ agent_name: name }) => name),
    error: result.error ?? null,
  }
  const reason = judgeCase(expect, end)
  return {
    passed: reason === null,
    status: end.status,
    route: end.route,
    output: end.output === null ? null : cutText(end.output, LONGEST_OUTPUT),
    reason,
    latency: rows[0]?.duration ?? null,
    tokens: rows[0]?.tokens ?? null,
  }
}
