import assert from 'node:assert/strict'
import { test } from 'node:test'
import { insertAlert } from '../../../test/kit/alerts.ts'
import { createTestApp } from '../../../test/kit/app.ts'
import { checkAlerts } from '../../flows/alerts/check-alerts.ts'
import { createFlowJournal } from '../../flows/execution/journal.ts'
import { builtInPatterns } from '../../flows/machine/built-in-patterns.ts'
import type { Alert } from '../../kernel/alert.ts'
import type { FlowRun } from '../../kernel/flow-run.ts'
import { newId } from '../../kernel/id.ts'
import { silentLog } from '../../kernel/log.ts'

const gate = Promise.withResolvers<void>()
const kit = await createTestApp({ models: new Map(), functions: { wait: () => gate.promise.then(() => 'waited') } })
const project = await kit.createProject()
const base = `/api/projects/${project.id}`
const root = { type: 'task', id: 'stuck', function: 'wait' }

interface Alerts {
  items: Alert[]
  next_cursor: string | null
}
const list = async (query = ''): Promise<Alerts> => (await kit.call<Alerts>(`GET ${base}/alerts${query}`)).body
const start = async (): Promise<string> =>
  (await kit.call<FlowRun>(`POST ${base}/flow-runs`, { body: { root } })).body.id

test('an alert about a slow flow run is in the list and in its stream, which ends with the end of the run', async () => {
  const id = await start()
  for (let run = await read(id); run.progress.running === 0; ) run = await read(id)
  await kit.clock.advance(60_000)
  const journal = createFlowJournal({ db: kit.pool, log: silentLog })
  assert.equal(await checkAlerts({ pool: kit.pool, journal, patterns: builtInPatterns }), 1)
  const [alert] = (await list(`?flow_run_id=${id}`)).items
  assert.ok(alert)
  assert.deepEqual([alert.flow_run_id, alert.kind, alert.acked_at], [id, 'slow', null])
  assert.match(alert.suspected_cause, /stuck/)
  gate.resolve()
  const { text } = await kit.call(`GET ${base}/flow-runs/${id}/events`)
  const kinds = [...text.matchAll(/^event: (.*)$/gm)].map(([, kind]) => kind)
  assert.deepEqual(kinds, ['flow.started', 'task.started', 'alert', 'task.completed', 'flow.completed'])
  const said = JSON.parse(/^event: alert\ndata: (.*)$/m.exec(text)?.[1] ?? '{}')
  const { alert_id, kind, suspected_cause } = said
  assert.deepEqual([alert_id, kind, suspected_cause], [alert.id, 'slow', alert.suspected_cause])
  // Other readers of the journal ignore an alert.
  for (const part of ['', '/tasks', '/trace', '/metrics', '/output']) {
    assert.equal((await kit.call(`GET ${base}/flow-runs/${id}${part}`)).status, 200, part)
  }
})

test('an alert is acked once; a second ack changes nothing and is not audited', async () => {
  const alertId = await insertAlert(kit.pool, project.id, await start())
  const ack = () => kit.call<Alert>(`POST ${base}/alerts/${alertId}/ack`)
  const first = await ack()
  assert.equal(first.status, 200)
  assert.ok(first.body.acked_at)
  await kit.clock.advance(1_000)
  const second = await ack()
  assert.deepEqual([second.status, second.body], [200, first.body])
  const audit = await kit.call<{ items: { action: string; target: { id: string } }[] }>(`GET ${base}/audit`)
  const noted = audit.body.items.filter((entry) => entry.action === 'alert.ack')
  assert.deepEqual(
    noted.map((entry) => entry.target.id),
    [alertId],
  )
  assert.equal((await kit.call(`POST ${base}/alerts/${newId()}/ack`)).status, 404)
  assert.equal((await kit.call(`POST ${base}/alerts/nonsense/ack`)).status, 404)
})

test('alerts are listed page by page, newest first, filtered by run and by ack', async () => {
  const runId = await start()
  const seen = await insertAlert(kit.pool, project.id, runId)
  await kit.call(`POST ${base}/alerts/${seen}/ack`)
  await kit.clock.advance(1_000)
  const open = await insertAlert(kit.pool, project.id, runId)
  const idsOf = ({ items }: Alerts): string[] => items.map((alert) => alert.id)
  assert.deepEqual(idsOf(await list(`?flow_run_id=${runId}`)), [open, seen])
  assert.deepEqual(idsOf(await list(`?flow_run_id=${runId}&acked=false`)), [open])
  assert.deepEqual(idsOf(await list(`?flow_run_id=${runId}&acked=true`)), [seen])
  const first = await list(`?flow_run_id=${runId}&limit=1`)
  const second = await list(`?flow_run_id=${runId}&limit=1&cursor=${first.next_cursor}`)
  assert.deepEqual([...idsOf(first), ...idsOf(second), second.next_cursor], [open, seen, null])
  for (const query of ['acked=yes', 'acked=', 'flow_run_id=x', 'cursor=x', 'kind=slow']) {
    assert.equal((await kit.call(`GET ${base}/alerts?${query}`)).status, 400, query)
  }
})

async function read(id: string): Promise<FlowRun> {
  return (await kit.call<FlowRun>(`GET ${base}/flow-runs/${id}`)).body
}
