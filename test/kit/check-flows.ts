// Checks the promise for flows, by the API and by counts from outside: recorded work is never done again, no work is
// done more often than servers died over it, and the flow ends as if no server had died.
import assert from 'node:assert/strict'
import type { Trace } from '../../src/flows/history/trace.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { type Begun, type FlowWorld, type Kill, requireSum } from './flow-harness.ts'
import type { FlowCall } from './flow-ledger.ts'
import type { Muster } from './process.ts'

/** The end of a flow run, the same however often the run was interrupted. */
export interface Whole {
  run: Pick<FlowRun, 'status' | 'output' | 'results' | 'error' | 'progress'>
  tasks: Record<string, unknown>[]
  /** The number of events in the journal, by kind and leaf. */
  told: Record<string, number>
  agentRuns: number
}

export async function readWhole(world: FlowWorld, server: Muster, { id }: Begun): Promise<Whole> {
  const path = `GET /api/projects/${world.projectId}/flow-runs/${id}`
  const { status, output, results, error, progress } = (await server.call<FlowRun>(path)).body
  const { tasks, timeline } = (await server.call<Trace>(`${path}/trace`)).body
  const told: Record<string, number> = {}
  for (const { event, task_id } of timeline) {
    if (!/^(task|flow)\./.test(event)) continue
    const name = `${event} ${task_id ?? ''}`
    told[name] = (told[name] ?? 0) + 1
  }
  return {
    run: { status, output, results, error, progress },
    // The worker, the run and the times of a task differ each time.
    tasks: tasks
      .map(({ worker: _, start_at: __, end_at: ___, usage: ____, run_id: _____, depends_on, ...task }) => ({
        ...task,
        depends_on: depends_on.toSorted(),
      }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    told: Object.fromEntries(Object.entries(told).toSorted()),
    agentRuns: (await world.query('select from agent_runs where flow_run_id = $1', [id])).length,
  }
}

/** The end of a flow run without any kill, which other flow runs are compared with. */
export async function readUndisturbed(world: FlowWorld, server: Muster, flow: Begun): Promise<Whole> {
  const whole = await readWhole(world, server, flow)
  const { progress, status } = whole.run
  assert.equal(status, 'completed', `${flow.tag}: ${whole.run.error}`)
  requireSum({ ...progress, items: 0 }, flow.tag)
  assert.equal(progress.completed, progress.total, flow.tag)
  assert.ok(whole.tasks.length > 0)
  for (const task of whole.tasks)
    assert.deepEqual([task.status, task.attempts], ['completed', 1], `${flow.tag} ${task.id}`)
  for (const [what, times] of Object.entries(whole.told)) assert.equal(times, 1, `${flow.tag}: ${what}`)
  await requireOnce(world, flow)
  return whole
}

/** Asserts that the flow ended like the undisturbed one, and that no recorded work was done again. */
export async function checkFlow(world: FlowWorld, server: Muster, flow: Begun, undisturbed: Whole): Promise<void> {
  await requireOnce(world, flow)
  assert.deepEqual(await readWhole(world, server, flow), undisturbed, flow.tag)
}

async function requireOnce(world: FlowWorld, flow: Begun): Promise<void> {
  assert.deepEqual([...findWrongCalls(world, flow), ...(await findWrongQuestions(world, flow))], [], flow.tag)
}

/** Calls of functions that should not have been made. */
export function findWrongCalls({ ledger, kills }: FlowWorld, { id }: Begun): string[] {
  const wrong: string[] = []
  for (const [key, calls] of Map.groupBy(ledger.callsOf(id), (call) => call.key)) {
    const what = `${calls[0]?.name} ${key.slice(id.length + 1)}`
    if (!calls.at(-1)?.hasEnded) wrong.push(`${what} was not called to its end`)
    for (const [place, again] of calls.slice(1).entries()) {
      const reasons = [...kills.values()].filter((kill) => isBetween(kill, calls[place], again))
      if (reasons.length === 0) wrong.push(`${what} was called again, though nobody had died`)
      else if (reasons.some((kill) => isOnRecord(kill, id, key))) {
        wrong.push(`${what} was called again, though it was done on record`)
      }
    }
  }
  return wrong
}

/** A message that a process sent just before its death may arrive just after its death. */
function isBetween(kill: Kill, earlier: FlowCall | undefined, later: FlowCall): boolean {
  if (!earlier) return false
  if (kill.pid === earlier.pid) return later.pid !== earlier.pid && kill.at < later.at
  return earlier.at < kill.at && kill.at < later.at
}

/** A leaf with several calls is done when all its calls are; each item of a pipeline is done separately. */
function isOnRecord({ ended, done }: Kill, flowRunId: string, key: string): boolean {
  const [, leaf] = key.split(':')
  return ended.has(flowRunId) || done.has(`${flowRunId}:${leaf}`) || done.has(key)
}

/** Questions to the model that should not have been asked. */
export async function findWrongQuestions({ query, model, kills }: FlowWorld, { id }: Begun): Promise<string[]> {
  const runs = await query<{ id: string; input: string; status: string; kinds: string[] }>(
    `select id, input, status, array(select kind from run_events e where e.run_id = r.id order by seq) as kinds
     from agent_runs r where flow_run_id = $1`,
    [id],
  )
  return runs.flatMap((run) => {
    const asked = model.asked(run.input)
    const seen = [...kills.values()].flatMap((kill) => kill.runs.get(run.id) ?? [])
    const interruptions = seen.filter(({ hasEnded }) => !hasEnded).length
    const wrong: string[] = []
    if (run.status !== 'completed') wrong.push(`"${run.input}" is ${run.status}`)
    if (seen.some(({ hasEnded, asked: before }) => hasEnded && before !== asked)) {
      wrong.push(`"${run.input}" was asked again, though its run had ended`)
    }
    if (asked < 1 || asked > 1 + interruptions)
      wrong.push(`"${run.input}" was asked ${asked} times: ${run.kinds.join(', ')}`)
    return wrong
  })
}

/** The number of calls that were made a second time, allowed or not. */
export function countRepeated({ ledger }: FlowWorld, { id }: Begun): number {
  const calls = ledger.callsOf(id)
  return calls.length - new Set(calls.map(({ key }) => key)).size
}
