import type { Db } from '../db/pool.ts'
import { cleanText } from '../journal/clean-json.ts'
import { type Creator, MAX_TITLE, type TaskStatus } from '../kernel/task.ts'

export interface HumanQuestion {
  /** The caller chooses the id, so that a question repeated after a crash is asked once. */
  taskId: string
  projectId: string
  runId: string
  agentId: string
  question: string
}

export interface HumanAnswer {
  answer: unknown
  isRefused: boolean
}

const DECLINED: HumanAnswer = { answer: { error: 'The people in charge declined to answer.' }, isRefused: true }

/** Runs ask people by an escalation task; its result is the answer. */
export function createAskHuman({ pool }: { pool: Db }) {
  return {
    /** A cancelled run asks nothing: the cancel, which locks the run, has closed the run's questions. */
    async ask({ taskId, projectId, runId, agentId, question }: HumanQuestion): Promise<void> {
      const text = cleanText(question)
      const creator: Creator = { type: 'agent', id: agentId }
      await pool.query(
        `insert into tasks (id, project_id, kind, title, description, priority, created_by, run_id)
         select $1::uuid, $2::uuid, 'escalation', $3::text, $4::text, 'high', $5::jsonb, id from agent_runs
         where id = $6 and cancel_requested_at is null and completed_at is null for share
         on conflict (id) do nothing`,
        [taskId, projectId, titleOf(text), text, JSON.stringify(creator), runId],
      )
    },

    /** Answers of the resolved tasks; open tasks are absent. */
    async answers(taskIds: readonly string[]): Promise<Map<string, HumanAnswer>> {
      const { rows } = await pool.query<{ id: string; status: TaskStatus; result: unknown }>(
        `select id, status, result from tasks where id = any($1) and status in ('completed', 'cancelled', 'rejected')`,
        [taskIds],
      )
      return new Map(rows.map((row) => [row.id, row.status === 'completed' ? answerOf(row.result) : DECLINED]))
    },
  }
}

const answerOf = (result: unknown): HumanAnswer => ({ answer: result ?? '', isRefused: false })

function titleOf(question: string): string {
  const line =
    question
      .split(/[\r\n]+/)
      .find((each) => each.trim() !== '')
      ?.trim() ?? 'A question'
  // PostgreSQL counts characters, and a character may be a surrogate pair.
  const characters = [...line]
  return characters.length <= MAX_TITLE ? line : `${characters.slice(0, MAX_TITLE - 1).join('')}…`
}
