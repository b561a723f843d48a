import { newId } from '../../src/kernel/id.ts'
import { beginAnewTaskId } from '../../src/tasks/begin-anew-tasks.ts'
import { withClient } from './test-server.ts'

/** The question whether work may begin anew, as the attempts at a task ask it. Two calls were made. Returns its id. */
export async function askAboutBeginning(databaseUrl: string, projectId: string, agentId: string): Promise<string> {
  const [taskId, runId] = [newId(), newId()]
  const made = {
    tool: 'refund',
    args: { order: 7 },
    result: { ok: true },
    key: 'key-1',
    is_finished: true,
    at: new Date().toISOString(),
  }
  const calls = [
    made,
    { ...made, tool: 'notify', result: null, is_finished: false, key: 'key-2' },
    { ...made, tool: 'silent', result: null, key: 'key-3' },
  ]
  const id = beginAnewTaskId(taskId, runId)
  await withClient(databaseUrl, (db) =>
    db.query(
      `insert into tasks (id, project_id, kind, title, description, priority, created_by, metadata)
       values ($1, $2, 'escalation', 'Start over on "Pay Ada"?', 'It would start over.', 'high', $3, $4)`,
      [id, projectId, { type: 'agent', id: agentId }, { kind: 'begin_anew', run_id: runId, task_id: taskId, calls }],
    ),
  )
  return id
}
