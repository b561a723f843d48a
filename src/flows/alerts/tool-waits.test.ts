import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { silentLog } from '../../kernel/log.ts'
import { createFlowJournal } from '../execution/journal.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { listAlerts } from './alerts.ts'
import { checkAlerts } from './check-alerts.ts'

const flows = await createTestFlows({ tools: [testTool('here', async () => 1)], isRouted: true })
const { pool, clock, projectId } = flows
flows.models.set(
  'script',
  createScriptedModel(() => ({ text: 'done' })),
)

test('a flow run whose leaf waits for a tool is told as slow, with the tool', async () => {
  const { name } = await flows.createAgent({ tools: ['elsewhere'] })
  const id = await flows.startFlow({ type: 'task', id: 'leaf', agent: name })
  const isStill = async () =>
    (await pool.query('select from flow_runs where id = $1 and all_wait_since is not null', [id])).rowCount === 1
  await until(isStill, 'the flow stands still')
  await clock.advance(600_000)
  const journal = createFlowJournal({ db: pool, log: silentLog })
  assert.equal(await checkAlerts({ pool, journal, patterns: builtInPatterns }), 1)
  const [alert] = (await listAlerts(pool, projectId, { flow_run_id: id }, { limit: 9 })).items
  assert.match(alert?.suspected_cause ?? '', /expected\. leaf waits for tool elsewhere\.$/)
})
