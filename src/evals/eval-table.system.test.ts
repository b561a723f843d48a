// The comparison of two variants over a hundred cases, against figures that were computed by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Course, createEvalKit, decide, NAMES, textOf } from '../../test/kit/evals.ts'
import type { Expectation } from '../kernel/eval.ts'
import type { ModelRequest } from '../kernel/model-call.ts'

const routeOf = (course: Course): string[] =>
  course === 'E' ? [] : [...course].map((letter) => NAMES[letter as keyof typeof NAMES]) // a letter is a key of NAMES

/**
 * One row for each last digit of a case, computed by hand. Every model call has 15 tokens, so R has 75 (decision, work,
 * summary, decision, answer), RT 120 (three calls more) and E 30 (decision, question).
 */
const TABLE: readonly [expect: Expectation, blue: Course, green: Course, bluePasses: boolean, greenPasses: boolean][] =
  [
    [{ status: 'DONE' }, 'R', 'R', true, true],
    [{ status: 'DONE' }, 'E', 'R', false, true],
    [{ status: 'ESCALATE' }, 'E', 'E', true, true],
    [{ status: 'ESCALATE' }, 'E', 'R', true, false],
    [{ route: ['research_agent'] }, 'R', 'RT', true, false],
    [{ route: ['research_agent', 'transform_agent'] }, 'R', 'RT', false, true],
    [{ contains: 'by green' }, 'R', 'R', false, true],
    [{ max_steps: 1 }, 'RT', 'R', false, true],
    [{ status: 'DONE', contains: 'Answer', max_steps: 2 }, 'RT', 'RT', true, true],
    [{ status: 'DONE', max_steps: 0 }, 'R', 'RT', false, false],
  ]

const digitOf = (request: ModelRequest): number => Number(/case \d*(\d)/.exec(textOf(request))?.[1])

test('an eval of 100 cases over blue and green ends with deltas that match a hand-computed table', async () => {
  const kit = await createEvalKit(
    {
      supervisor: (request) => decide(TABLE[digitOf(request)]?.[1] ?? 'R', request),
      finalizer: 'Answer by blue.',
      escalation: 'A question.',
    },
    {
      supervisor: (request) => decide(TABLE[digitOf(request)]?.[2] ?? 'R', request),
      finalizer: () => 'Answer by green.',
    },
  )
  const cases = Array.from({ length: 100 }, (_, index) => ({
    task: `case ${String(index).padStart(3, '0')}`,
    expect: TABLE[index % 10]?.[0] ?? {},
  }))
  const read = await kit.evaluate(cases)
  assert.deepEqual([read.status, read.compared], ['completed', ['blue', 'green']])
  assert.deepEqual(read.progress, { done: 200, total: 200 })

  const { blue = assert.fail(), green = assert.fail() } = read.variants
  // Blue passes 5 of ten digits and green 7; their tokens are 705 and 885 together.
  assert.deepEqual([blue.pass_rate, blue.tokens], [0.5, 70.5])
  assert.deepEqual([green.pass_rate, green.tokens], [0.7, 88.5])
  // A status is expected of six digits: blue asks a person once too often, green once too seldom. A route is expected
  // of two.
  assert.deepEqual(blue.correctness, { status: 5 / 6, routing: 0.5, escalation: 5 / 6 })
  assert.deepEqual(green.correctness, { status: 5 / 6, routing: 0.5, escalation: 5 / 6 })
  assert.equal(read.deltas.pass_rate, 0.2)
  assert.equal(read.deltas.tokens, 18)
  assert.equal(read.deltas.latency, (green.latency ?? 0) - (blue.latency ?? 0))
  // 40 cases gained and 20 lost of 100: 20/102 ± 1.959964 · √((62/102 - (20/102)²) / 102).
  assert.deepEqual(read.intervals.pass_rate?.map(rounded), [0.04964, 0.342517])
  // The differences of tokens have the mean 18 and the standard deviation 30: 18 ± 1.984217 · 30 / 10.
  assert.deepEqual(read.intervals.tokens?.map(rounded), [12.047349, 23.952651])
  const [low = 0, high = 0] = read.intervals.latency ?? []
  assert.ok(low <= (read.deltas.latency ?? 0) && (read.deltas.latency ?? 0) <= high)
  assert.deepEqual(green.versus_first, { deltas: read.deltas, intervals: read.intervals })
  assert.equal(blue.versus_first, null)

  for (const [variant, place] of [
    ['blue', 0],
    ['green', 1],
  ] as const) {
    const results = read.variants[variant]?.cases ?? []
    assert.equal(results.length, 100)
    for (const [index, { run_id: _, latency, reason, ...found }] of results.entries()) {
      const row = TABLE[index % 10] ?? assert.fail()
      const course = row[1 + place] as Course // the two courses of a row
      assert.deepEqual(found, {
        index,
        task: `case ${String(index).padStart(3, '0')}`,
        passed: row[3 + place],
        status: course === 'E' ? 'ESCALATE' : 'DONE',
        route: routeOf(course),
        output: course === 'E' ? 'A question.' : `Answer by ${variant}.`,
        tokens: { R: 75, RT: 120, E: 30 }[course],
      })
      assert.equal(reason === null, found.passed)
      assert.ok(latency !== null && latency >= 0)
    }
    const latencies = results.map(({ latency }) => latency ?? 0)
    assert.equal(read.variants[variant]?.latency, Math.round(latencies.reduce((sum, one) => sum + one, 0) / 100))
  }
  const { cases: ofBlue } = blue
  assert.equal(ofBlue[1]?.reason, 'The status is ESCALATE; expected was DONE.')
  assert.equal(ofBlue[5]?.reason, 'The route is research_agent; expected was research_agent → transform_agent.')
  assert.equal(ofBlue[6]?.reason, 'The output does not contain "by green".')
  assert.equal(ofBlue[7]?.reason, 'Specialists worked 2 times; at most 1 were expected.')
  assert.deepEqual(
    read.changed.map(({ index }) => index),
    cases.flatMap((_, index) => ([1, 3, 4, 5, 6, 7].includes(index % 10) ? [index] : [])),
  )
  assert.deepEqual(read.changed[0], { index: 1, task: 'case 001', passed: { blue: false, green: true } })
  assert.deepEqual(await kit.readEval(read.id), read, 'the same outcomes give the same figures')

  // No person was asked, although 40 runs escalated; every run knows its eval.
  assert.deepEqual((await kit.get<{ items: unknown[] }>('/tasks')).items, [])
  const { rows } = await kit.pool.query<{ node: string; count: number }>(
    `select trigger->>'node' as node, count(*)::int as count from agent_runs
     where project_id = $1 and trigger->>'eval_id' = $2 group by 1 order by 1`,
    [kit.project.id, read.id],
  )
  assert.deepEqual(rows, [
    { node: 'research_agent', count: 160 },
    { node: 'supervisor', count: 200 },
    { node: 'transform_agent', count: 60 },
  ])
})

const rounded = (value: number): number => Math.round(value * 1e6) / 1e6
