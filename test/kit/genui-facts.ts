// Facts of layouts for tests: plain facts to start from, and random facts that are as strange as stored rows may be.
import fc from 'fast-check'
import type { EvalFacts } from '../../src/genui/eval-comparison.ts'
import type { LayoutFacts } from '../../src/genui/layout.ts'
import type { RunFacts } from '../../src/genui/run-summary.ts'
import { evalStatuses, MOST_VARIANTS } from '../../src/kernel/eval.ts'
import { newId } from '../../src/kernel/id.ts'
import { pauseReasons, type Run, runStatuses } from '../../src/kernel/run.ts'
import { agentResults, toDoStatuses } from '../../src/kernel/supervisor.ts'
import { type Task, taskStatuses } from '../../src/kernel/task.ts'

const AT = '2026-01-02T03:04:05.678Z'

export function aTask(fields: Partial<Task> = {}): Task {
  return {
    id: newId(),
    kind: 'suggestion',
    title: 'Update Person Ada',
    description: 'She moved.',
    priority: 'medium',
    status: 'pending',
    assigned_to: null,
    created_by: { type: 'agent', id: newId() },
    parent_task_id: null,
    result: null,
    error_message: null,
    changes: null,
    reasoning: null,
    run_id: newId(),
    progress: { done: 0, total: 1, note: null },
    metadata: {},
    created_at: AT,
    completed_at: null,
    ...fields,
  }
}

export function aRun(fields: Partial<Run> = {}): Run {
  return {
    id: newId(),
    project_id: newId(),
    agent_id: newId(),
    status: 'completed',
    trigger: { type: 'manual' },
    input: 'x',
    summary: 'It is done.',
    error_code: null,
    error_message: null,
    pause_reason: null,
    is_wait: false,
    waiting_for: null,
    wait_message: null,
    next_try_at: null,
    step_count: 3,
    max_steps: null,
    timeout: null,
    parent_run_id: null,
    resumed_from: null,
    resumed_as: null,
    forked_from: null,
    flow_run_id: null,
    duration: 1_234,
    last_seq: 9,
    created_at: AT,
    started_at: AT,
    completed_at: AT,
    model: { provider: 'offline', name: 'offline' },
    usage: { input_tokens: 1_000, output_tokens: 234, total_tokens: 1_234, estimated: false, cost_usd: 0.0123 },
    trace_url: null,
    ...fields,
  }
}

export const runFacts = (fields: Partial<RunFacts> = {}): RunFacts => ({
  run: aRun(),
  agent: 'Researcher',
  subRuns: [],
  hasMoreSubRuns: false,
  questions: [],
  supervisor: null,
  ...fields,
})

/** Texts that break out of careless pages, and plain texts. */
export const strangeText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string(),
  fc.constantFrom(
    '<script>alert(1)</script>',
    '![x](http://evil.example/?q=1)',
    '[x](javascript:alert(1)) [y]: data:text/html,<b>',
    '](',
    '</page>',
    '\u202eabc\ud800',
    ' ',
    '',
  ),
  fc
    .tuple(fc.constantFrom('](', '<a', '!['), fc.integer({ min: 1, max: 15_000 }))
    .map(([text, times]) => text.repeat(times)),
  fc
    .tuple(fc.integer({ min: 19_980, max: 20_020 }), fc.constantFrom('](https://a.example)', '<a', '😀'))
    .map(([length, end]) => `${'x'.repeat(length)}${end}`),
)
const properties = fc.option(fc.dictionary(strangeText, fc.oneof(strangeText, fc.jsonValue({ maxDepth: 2 }))), {
  nil: null,
})
const id = fc.uuid()
const maybe = <Value>(of: fc.Arbitrary<Value>) => fc.option(of, { nil: null })

const aCall = fc
  .record({ tool: strangeText, args: fc.oneof(properties, fc.jsonValue({ maxDepth: 2 })) })
  .map(({ tool, args }) => [{ op: 'call' as const, tool, args: args as unknown }])

const task: fc.Arbitrary<Task> = fc
  .record({
    kind: fc.constantFrom('suggestion' as const, 'escalation' as const),
    title: strangeText,
    description: strangeText,
    status: fc.constantFrom(...taskStatuses),
    reasoning: maybe(strangeText),
    result: fc.oneof(strangeText, fc.jsonValue({ maxDepth: 2 })),
    run_id: maybe(id),
    metadata: fc.constantFrom({}, { stale: true }, { stale: true, stale_reason: '<b>moved</b>' }, { kind: 'x' }),
    changes: maybe(
      fc.oneof(
        aCall,
        fc.array(
          fc.record({
            op: fc.constantFrom('create' as const, 'update' as const, 'delete' as const, 'relate' as const),
            object_type: strangeText,
            object_id: maybe(id),
            key: maybe(strangeText),
            base_version: maybe(fc.nat()),
            before: properties,
            after: properties,
          }),
          { maxLength: 25 },
        ),
      ),
    ),
  })
  .map((fields) => aTask(fields))

const amounts = {
  step_count: fc.nat(),
  total_tokens: fc.nat(),
  cost_usd: maybe(fc.double({ min: 0, max: 1e6, noNaN: true })),
}
const stands = {
  status: fc.constantFrom(...runStatuses),
  pause_reason: maybe(fc.constantFrom(...pauseReasons)),
  duration: maybe(fc.nat()),
}

const run: fc.Arbitrary<RunFacts> = fc.record({
  run: fc
    .record({
      ...stands,
      summary: maybe(strangeText),
      error_code: maybe(fc.constantFrom('DOOM_LOOP', 'MODEL_ERROR', 'toString', '<b>')),
      error_message: maybe(strangeText),
      max_steps: maybe(fc.nat()),
      parent_run_id: maybe(id),
      resumed_from: maybe(id),
      completed_at: maybe(fc.constant(AT)),
    })
    .map((fields) => aRun(fields)),
  agent: maybe(strangeText),
  subRuns: fc.array(fc.record({ id, name: maybe(strangeText), said: maybe(strangeText), ...stands, ...amounts }), {
    maxLength: 110,
  }),
  hasMoreSubRuns: fc.boolean(),
  questions: fc.array(
    task.map((each) => ({ ...each, kind: 'escalation' as const })),
    { maxLength: 5 },
  ),
  supervisor: maybe(
    fc.record({
      variant: strangeText,
      plan: fc.array(
        fc.record({ id: fc.string(), description: strangeText, status: fc.constantFrom(...toDoStatuses) }),
        { maxLength: 110 },
      ),
      history: fc.array(
        fc.record({
          agent_name: strangeText,
          step_id: id,
          result: fc.constantFrom(...agentResults),
          short_summary: strangeText,
          key_decisions: fc.constant([]),
          next_instructions_for_supervisor: strangeText,
        }),
        { maxLength: 110 },
      ),
    }),
  ),
})

const figure = fc.option(fc.double({ min: -1e9, max: 1e9, noNaN: true }), { nil: null })
const interval = fc.option(fc.tuple(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(1)), { nil: null })
const measured = fc.record({
  pass_rate: figure,
  latency: figure,
  tokens: figure,
  cases: fc.array(
    fc.record({ task: strangeText, passed: maybe(fc.boolean()), reason: maybe(strangeText), run_id: maybe(id) }),
  ),
})
const evaluated: fc.Arbitrary<EvalFacts> = fc
  .record({
    id,
    name: strangeText,
    status: fc.constantFrom(...evalStatuses),
    error_message: maybe(strangeText),
    progress: fc.record({ done: fc.nat(), total: fc.nat() }),
    variants: fc.dictionary(strangeText, measured, { maxKeys: MOST_VARIANTS }),
    deltas: fc.record({ pass_rate: figure, latency: figure, tokens: figure }),
    intervals: fc.record({ pass_rate: interval, latency: interval, tokens: interval }),
  })
  .map((facts) => ({ ...facts, compared: Object.keys(facts.variants) }))

const label = fc.oneof(fc.string({ minLength: 1, maxLength: 200 }), fc.constantFrom('<b>', '<a'.repeat(100), '\u202e'))
const generic = fc.record({
  title: fc.option(strangeText, { nil: undefined }),
  fields: fc.option(
    fc.array(
      fc.record({
        label,
        options: fc.option(fc.array(label, { minLength: 1, maxLength: 50 }), { nil: undefined }),
      }),
      { maxLength: 50 },
    ),
    { nil: undefined },
  ),
  facts: fc.dictionary(strangeText, fc.oneof(strangeText, fc.jsonValue({ maxDepth: 2 }))),
  known: fc.tuple(id, id).map(([taskId, runId]) => [
    { target: 'task' as const, id: taskId },
    { target: 'run' as const, id: runId },
  ]),
})

export const anyFacts: fc.Arbitrary<LayoutFacts> = fc.oneof(
  generic.map((facts): LayoutFacts => ({ scenario: 'generic', facts })),
  fc.record({ task, author: maybe(strangeText) }).map((facts): LayoutFacts => ({ scenario: 'approval', facts })),
  run.map((facts): LayoutFacts => ({ scenario: 'run_summary', facts })),
  evaluated.map((facts): LayoutFacts => ({ scenario: 'eval_comparison', facts })),
)
