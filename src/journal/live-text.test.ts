import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { until } from '../../test/kit/embedded-kit.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import { silentLog } from '../kernel/log.ts'
import { createHub } from './hub.ts'
import { createLiveTexts } from './live-text.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)

test('a process that joins in mid-text is shown what was said before it came', async () => {
  const [runId = ''] = await insertRuns(pool, projectId, 1)
  let hasOthers = false
  const texts = createLiveTexts({ db: pool, hub: createHub(), hasOthers: () => hasOthers, log: silentLog })
  const shared = async (): Promise<string[]> => {
    const { rows } = await pool.query<{ text: string }>('select text from run_live_text where run_id = $1', [runId])
    return rows.map((row) => row.text)
  }
  texts.add({ runId, step: 1, offset: 0, text: 'First ' }, [])
  texts.add({ runId, step: 1, offset: 6, text: 'I look' }, [])
  await new Promise((resolve) => setTimeout(resolve, 250))
  assert.deepEqual(await shared(), [], 'alone, nothing is written')
  hasOthers = true
  await until(async () => (await shared())[0] === 'First I look', 'it is shared')
  texts.stop()
})
