// A statement that changes what lists show must set changed_in, or the feed of changes does not tell of it.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { trackedFiles } from '../../test/kit/tracked-files.ts'

/**
 * A change of a run's or a flow run's status is noted by a trigger if a statement forgets it, but not the end of an
 * ownership, with which the last steps of its owner become visible. Tasks and agents have triggers for every change.
 */
const MUST_MARK = [/\bupdate (agent_runs|flow_runs)\b[^;]*\bowner = (null|case)\b/, /\bupdate (objects|flow_alerts)\b/]

const marks = (statement: string): boolean => /MARK_CHANGED|markChangedIf|\bchanged_in = /.test(statement)

function forgetful(path: string, text: string): string[] {
  const statements = [...text.matchAll(/`(?:[^`\\]|\\.|\$\{[^}]*`[^`]*`[^}]*\})*`|'(?:[^'\\\n]|\\.)*'/g)].map(
    ([found]) => found,
  )
  return statements
    .filter((statement) => MUST_MARK.some((pattern) => pattern.test(statement)) && !marks(statement))
    .map((statement) => `${path}: ${statement.slice(0, 200)}`)
}

test('every statement that changes a row without a trigger marks the change', async () => {
  const paths = (await trackedFiles()).filter((path) => /^src\/.*\.ts$/.test(path) && !path.endsWith('.test.ts'))
  const files = await Promise.all(paths.map(async (path) => ({ path, text: await readFile(path, 'utf8') })))
  const marking = files.filter(({ path, text }) => path !== 'src/db/changed-in.ts' && marks(text))
  assert.ok(marking.length >= 10, `only ${marking.length} files mark changes`)
  assert.deepEqual(
    files.flatMap(({ path, text }) => forgetful(path, text)),
    [],
  )
})

test('a planted statement without a mark is found', () => {
  assert.equal(forgetful('x', '`update flow_runs r set owner = null where id = $1`').length, 1)
  assert.equal(forgetful('x', "'update objects set deleted_at = muster.now()'").length, 1)
  assert.equal(forgetful('x', '`update objects set deleted_at = muster.now(), $' + '{MARK_CHANGED}`').length, 0)
  assert.equal(forgetful('x', '`update agent_runs set ready_at = muster.now()`').length, 0)
})
