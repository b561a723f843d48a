// Checks the promise, by the database and by counts from outside, after any faults in the servers: an accepted run is
// never lost, no effect happens twice unseen, and every answer to a client stays true.
import assert from 'node:assert/strict'
import { type FakeModel, usageOfStep } from './fake-model.ts'
import type { Ledger } from './ledger-server.ts'
import type { Muster } from './process.ts'
import { eventsOf, plannedEffects, type RunRecord, readRuns } from './run-record.ts'
import { readStream, type StreamedEvent } from './run-stream.ts'
import { withClient } from './test-server.ts'

export interface Checked {
  databaseUrl: string
  /** A running server, whose streams must have the same events as the journal. */
  server: Muster
  projectId: string
  /** Every run that a client knows of. The streams of these runs are read; all other checks cover all runs. */
  accepted: readonly string[]
  ledger: Ledger
  model: FakeModel
}

/** Throws unless all runs have ended and the promise holds. Returns the runs, for further checks of a test. */
export async function checkInvariants(checked: Checked): Promise<Map<string, RunRecord>> {
  const runs = await readRuns(checked.databaseUrl, checked.projectId)
  requireNothingLost(runs, checked.accepted)
  for (const run of runs.values()) {
    const name = `run ${run.id} (${run.plan.tag}, ${run.status})`
    requireWholeJournal(run, name)
    requireLegalStates(run, name)
    requireFamily(runs, run, name)
    requireEffectsOnce(run, checked.ledger, name)
    requireBudget(runs, run, checked.model, name)
  }
  await requireAgentsCharged(checked, runs)
  await requireReplay(checked, runs)
  return runs
}

/** I1 */
function requireNothingLost(runs: ReadonlyMap<string, RunRecord>, accepted: readonly string[]): void {
  for (const id of accepted) assert.ok(runs.has(id), `the accepted run ${id} is lost`)
  const top = [...runs.values()].filter((run) => run.parent_run_id === null && run.resumed_from === null)
  const tags = top.map((run) => run.plan.tag)
  assert.equal(new Set(tags).size, tags.length, 'a request was accepted as two runs')
  for (const run of runs.values()) {
    assert.ok(run.completed_at, `run ${run.id} (${run.plan.tag}) has not ended: ${run.status}, ${kindsOf(run)}`)
  }
}

/** I3, and the part of I5 that a journal shows: a write of an old owner would be a second step, call or end. */
function requireWholeJournal(run: RunRecord, name: string): void {
  const seqs = run.events.map(({ seq }) => seq)
  assert.deepEqual(
    seqs,
    seqs.map((_, index) => index + 1),
    `${name}: its events are not numbered without gap`,
  )
  assert.equal(run.last_seq, seqs.length, `${name}: last_seq`)
  assert.equal(new Set(run.events.map(({ id }) => id)).size, seqs.length, `${name}: an event was written twice`)
  const finals = run.own.filter(({ kind, data }) =>
    kind === 'run.paused'
      ? data.pause_reason !== 'human' && data.pause_reason !== 'halted' // it waits
      : /^run\.(completed|failed|cancelled)$/.test(kind),
  )
  assert.equal(finals.length, 1, `${name}: ${finals.length} final events: ${kindsOf(run)}`)
  assert.equal(run.events.at(-1)?.id, finals[0]?.id, `${name}: something follows its end: ${kindsOf(run)}`)
  assert.equal(finals[0]?.kind, `run.${run.status}`, `${name}: its end`)
  requireOnce(run, 'run.started', () => '', name)
  requireOnce(run, 'step.completed', ({ step }) => String(step), name)
  requireOnce(run, 'tool.started', ({ call_id }) => String(call_id), name)
  requireOnce(run, 'tool.completed', ({ call_id }) => String(call_id), name)
}

function requireOnce(run: RunRecord, kind: string, by: (data: Record<string, unknown>) => string, name: string): void {
  const all = eventsOf(run, kind).map(({ data }) => by(data))
  assert.equal(new Set(all).size, all.length, `${name}: ${kind} was written twice: ${kindsOf(run)}`)
}

/** I4: the row and the order of the journal. */
function requireLegalStates(run: RunRecord, name: string): void {
  assert.ok(run.duration !== null && run.duration >= 0, `${name}: it has no duration`)
  assert.equal(run.owner, null, `${name}: it has ended and is owned`)
  assert.equal(run.ready_at, null, `${name}: it has ended and wants a slot`)
  assert.equal(run.reserved, 0, `${name}: it has ended and holds a reservation`)
  const [first] = run.own
  assert.ok(
    first?.kind === 'run.started' || first?.kind === 'run.cancelled',
    `${name}: it begins with ${first?.kind}: ${kindsOf(run)}`,
  )
  // A resumed run continues the count of the run before it, and may end again before its first step.
  const firstStep = eventsOf(run, 'step.completed')[0]?.data.step
  let steps = firstStep === undefined && run.resumed_from !== null ? run.step_count : Number(firstStep ?? 1) - 1
  if (run.resumed_from === null) assert.equal(steps, 0, `${name}: its first step`)
  const open = new Set<unknown>()
  for (const { kind, data } of run.own) {
    if (kind === 'step.completed') {
      assert.equal(open.size, 0, `${name}: a step before the calls of the last were settled: ${kindsOf(run)}`)
      assert.equal(data.step, ++steps, `${name}: steps out of order: ${kindsOf(run)}`)
    }
    if (kind === 'step.restarted') assert.equal(data.step, steps + 1, `${name}: a finished step was begun anew`)
    if (kind === 'tool.started') {
      assert.equal(data.step, steps, `${name}: a call of another step`)
      open.add(data.call_id)
    }
    if (kind === 'tool.completed') {
      // Calls of the run that a resumed run continues were announced in the earlier run.
      const isKnown = open.delete(data.call_id) || run.resumed_from !== null
      assert.ok(
        isKnown,
        `${name}: the result of ${data.name} ${data.call_id}, which was not announced: ${kindsOf(run)}`,
      )
    }
  }
  assert.equal(run.step_count, steps, `${name}: step_count`)
  assert.ok(run.status !== 'completed' || open.size === 0, `${name}: it completed with open calls`)
}

/** I4: parents and children agree. */
function requireFamily(runs: ReadonlyMap<string, RunRecord>, run: RunRecord, name: string): void {
  assert.equal(run.open_children, 0, `${name}: it has ended and counts open children`)
  for (const { data } of eventsOf(run, 'tool.completed')) {
    const { run_id: childId, status, summary } = (data.result ?? {}) as Record<string, unknown> // compared below
    if (data.name !== 'spawn_agent' || typeof childId !== 'string') continue
    const child = runs.get(childId)
    assert.deepEqual([status, summary], [child?.status, child?.summary], `${name}: the outcome of its child`)
    assert.equal(child?.parent_run_id, run.id)
  }
  if (run.status !== 'completed') return
  // A parent also shows all events of its children, in their order.
  for (const child of runs.values()) {
    // A child that people resumed goes on after its parent got the child's first outcome.
    if (child.parent_run_id !== run.id || child.resumed_from !== null) continue
    const shown = run.events.filter(({ data }) => data.run_id === child.id)
    assert.deepEqual(
      shown.map(({ kind, data: { run_id: _, ...data } }) => ({ kind, data })),
      child.own.map(({ kind, data }) => ({ kind, data })),
      `${name}: its events of its child ${child.id}`,
    )
  }
}

/** I2 */
function requireEffectsOnce(run: RunRecord, ledger: Ledger, name: string): void {
  const effectOf = new Map(plannedEffects(run.plan).map((planned) => [planned.label, planned]))
  for (const { data } of eventsOf(run, 'tool.started')) {
    const planned = effectOf.get(String((data.args as Record<string, unknown>).label)) // a tool call has arguments
    if (!planned) continue
    const { label, tool } = planned
    const effects = ledger.effects(label)
    const calls = ledger.callsOf(label)
    const isSettled = eventsOf(run, 'tool.completed').some((event) => event.data.call_id === data.call_id)
    if (data.effect === 'keyed') {
      assert.ok(effects <= 1, `${name}: ${tool} had ${effects} effects under ${calls.length} calls`)
      for (const call of calls) assert.equal(call.key, data.key, `${name}: ${tool} was called under another key`)
    }
    if (data.effect === 'unsafe') {
      assert.ok(effects <= 1, `${name}: the unsafe ${tool} was called ${effects} times`)
      const isUnknown = !isSettled && run.status !== 'cancelled' && run.error_code !== 'CRASH_LOOP'
      if (isUnknown) {
        assert.deepEqual([run.status, run.pause_reason], ['paused', 'outcome_unknown'], `${name}: ${tool} is open`)
      }
    }
    const isDone = isSettled && eventsOf(run, 'tool.completed').every((event) => !event.data.is_error)
    if (isDone && data.effect !== 'readonly') assert.equal(effects, 1, `${name}: ${tool} was reported as done`)
  }
  if (run.status !== 'completed' || run.resumed_from !== null) return
  for (const { label, tool } of effectOf.values()) {
    if (tool !== 'look') assert.equal(ledger.effects(label), 1, `${name}: it completed and ${tool} was not called once`)
  }
}

/** I6: the recorded usage is the usage that the model reported; calls lost in a crash are counted too, and marked. */
function requireBudget(runs: ReadonlyMap<string, RunRecord>, run: RunRecord, model: FakeModel, name: string): void {
  const steps = eventsOf(run, 'step.completed')
  const restarts = eventsOf(run, 'step.restarted')
  for (const { data } of steps) {
    const { inputTokens, outputTokens } = usageOfStep(Number(data.step))
    const usage = { input_tokens: inputTokens, output_tokens: outputTokens, estimated: false, cost_usd: null }
    assert.deepEqual(data.usage, usage, `${name}: the tokens of step ${data.step}`)
  }
  const told = [...steps, ...restarts].map(({ data }) => data.usage as Tokens | undefined) // as the journal has it
  const input = told.reduce((sum, usage) => sum + (usage?.input_tokens ?? 0), 0)
  const output = told.reduce((sum, usage) => sum + (usage?.output_tokens ?? 0), 0)
  // A run that is cancelled in the middle of a call has paid for the call, but has only its own end as an event.
  if (run.status === 'cancelled') assert.ok(run.input_tokens >= input && run.output_tokens >= output, name)
  else assert.deepEqual([run.input_tokens, run.output_tokens], [input, output], `${name}: its tokens`)

  const recoveries = eventsOf(run, 'run.recovered').length
  const lost = restarts.filter(({ data }) => data.reason === 'crash').length
  assert.ok(lost <= recoveries, `${name}: ${lost} calls are reported as lost in ${recoveries} recoveries`)
  if (restarts.length > 0) assert.ok(run.usage_estimated, `${name}: estimates are not marked`)
  const isOneOfSeveral = run.resumed_from !== null || [...runs.values()].some((other) => other.resumed_from === run.id)
  if (isOneOfSeveral) return
  const asked = model.requestsOf(run.plan.tag).length
  const atEnd = run.status === 'cancelled' || run.error_code === 'CRASH_LOOP' ? 1 : 0
  const facts = `${name}: ${asked} model calls, ${steps.length} steps, ${restarts.length} restarts: ${kindsOf(run)}`
  assert.ok(asked >= steps.length, facts)
  assert.ok(asked <= steps.length + restarts.length + atEnd, facts)
  const handedBack = restarts.filter(({ data }) => data.reason === 'handed_back' || data.reason === 'halted').length
  assert.ok(asked <= steps.length + recoveries + handedBack + atEnd, facts)
}

interface Tokens {
  input_tokens: number
  output_tokens: number
}

async function requireAgentsCharged(checked: Checked, runs: ReadonlyMap<string, RunRecord>): Promise<void> {
  const { rows } = await withClient(checked.databaseUrl, (db) =>
    db.query<{ used: number; reserved: number }>(
      `select coalesce(sum(used), 0)::int as used, coalesce(sum(reserved), 0)::int as reserved from agent_tokens
       where agent_id in (select id from agents where project_id = $1)`,
      [checked.projectId],
    ),
  )
  const spent = [...runs.values()].reduce((sum, run) => sum + run.input_tokens + run.output_tokens, 0)
  assert.deepEqual(rows, [{ used: spent, reserved: 0 }], 'the agents were not charged what their runs used')
}

/** I3: a stream from the start, and a stream from the middle, have exactly the events of the journal. */
async function requireReplay(
  { server, projectId, accepted }: Checked,
  runs: ReadonlyMap<string, RunRecord>,
): Promise<void> {
  for (const id of accepted) {
    const path = `/api/projects/${projectId}/runs/${id}/events`
    const expected = (runs.get(id)?.events ?? []).map(({ seq, kind, data }) => ({
      id: seq,
      event: kind,
      data: { run_id: id, ...data },
    }))
    const middle = Math.floor(expected.length / 2)
    const [whole, rest] = await Promise.all([readStream(server, path), readStream(server, path, { after: middle })])
    assert.deepEqual(whole.events.map(withoutPlace), expected, `run ${id}: its stream`)
    assert.deepEqual(rest.events.map(withoutPlace), expected.slice(middle), `run ${id}: its stream after ${middle}`)
  }
}

const withoutPlace = ({ id, event, data: { seq: _seq, at: _at, ...data } }: StreamedEvent) => ({ id, event, data })

const kindsOf = (run: RunRecord): string =>
  run.events.map(({ kind, data }) => (data.run_id === undefined ? kind : `(${kind})`)).join(' ')
