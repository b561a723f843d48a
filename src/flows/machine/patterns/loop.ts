import { z } from 'zod'
import { countField, type FlowNode, innerField, sharedFields, workField } from '../../../kernel/flow.ts'
import { isTrue } from '../is-true.ts'
import { type Child, callOf, endOf, failed, leafOf, type Move, type NodeState } from '../move.ts'
import { type Pattern, type PatternGuide, workPart } from '../pattern.ts'
import { ASSUMED, MOST_NAMED_WORKERS, promptOf, type Suits } from '../workload.ts'

const schema = z.strictObject({
  type: z.literal('loop'),
  ...sharedFields,
  body: innerField,
  max_iterations: countField,
  until: workField.optional(),
})
export interface Loop<Inner = FlowNode> extends Omit<z.infer<typeof schema>, 'body'> {
  body: Inner
}
export interface LoopInput<Inner> extends Omit<z.input<typeof schema>, 'body'> {
  body: Inner
}

const guide: PatternGuide = {
  text: 'Runs its body again and again. Each round finds the output of the round before in `{{previous}}`. The output is the output of the last round. A round that fails ends the node.',
  fields: {
    body: 'The node to repeat. It may be a pattern itself.',
    max_iterations: 'The most rounds.',
    until:
      'A function or leaf that is given `{output, iteration}` after each round. The loop ends when it answers true, or a text that begins with yes, true or done; every other answer starts the next round. Without it the loop makes all rounds.',
  },
  example: {
    input: { draft: 'We sell tea.' },
    root: {
      type: 'loop',
      body: {
        type: 'task',
        id: 'improve',
        function: 'muster.ask',
        args: {
          prompt: 'Improve this text, and make it longer.',
          input: { draft: '{{input.draft}}', so_far: '{{previous}}' },
        },
      },
      max_iterations: 3,
      until: { type: 'task', function: 'muster.is_larger', args: { of: '{{item.output}}', than: 2000 } },
    },
  },
}

const suits: Suits = {
  summary: 'one step again and again until the result is good enough',
  rank: 5,
  cues: [
    {
      weight: 6,
      speaks: /\b(until|while (it|there)|loop|repeat(ed|edly)?|iterat\w*|over and over)\b/i,
      because: 'it is repeated until something holds',
    },
    {
      weight: 5,
      speaks:
        /\b(refin\w*|polish\w*|keep (improving|trying|revising|editing)|improve step by step|self-?critique|good enough)\b/i,
      because: 'a result is made better round by round',
    },
    { weight: 4, speaks: ({ rounds }) => rounds !== null, because: 'the description gives a number of rounds' },
  ],
  plan: (facts) => {
    const rounds = Math.min(facts.rounds ?? ASSUMED.rounds, MOST_NAMED_WORKERS)
    const definition: Loop = {
      type: 'loop',
      body: callOf('muster.ask', { prompt: promptOf(facts), input: '{{previous}}' }),
      max_iterations: rounds,
      until: callOf('muster.ask', {
        prompt: `Is this good enough? Begin your answer with yes or no. It was asked for: ${promptOf(facts)}`,
        input: '{{item.output}}',
      }),
    }
    return { definition, workers: 1, calls: 2 * rounds, rounds: 2 * rounds }
  },
  counts: ({ rounds }) => (rounds === null ? `Assumes ${ASSUMED.rounds} rounds.` : `Counts ${rounds} rounds.`),
}

/** Runs the body again and again, each time with the last result, until `until` or the limit ends the loop. */
export const loop: Pattern<Loop> = {
  type: 'loop',
  schema,
  next,
  parts: ({ body, until }) => [
    { field: 'body', key: '1', node: body, isRepeated: true },
    ...workPart('until', until, 'until 1'),
  ],
  // All iterations have the parts of the first.
  partKey: (key) => (isUntil(key) ? 'until 1' : '1'),
  turnOf: (key) => (isUntil(key) ? 2 * Number(key.split(' ')[1]) + 1 : 2 * Number(key)),
  // The limit is assumed to be reached, because a loop that needs all its rounds is not late.
  expectedMs: ({ body, until, max_iterations }, times) => max_iterations * (times.of(body) + times.work(until)),
  functionFields: ['until'],
  suits,
  guide,
}

const isUntil = (key: string): boolean => key.startsWith('until')

function next({ node, previous, children, open }: NodeState<Loop>): Move {
  if (open > 0) return 'wait'
  // Each body is followed by its verdict.
  const iteration = node.until === undefined ? children.size : Math.ceil(children.size / 2)
  const body = children.get(String(iteration))
  if (iteration === 0) return { start: [bodyOf(node, 1, previous)] }
  if (!body || body.status === 'failed') return { end: failed(body?.error ?? 'The loop did not run.') }
  const again = { start: [bodyOf(node, iteration + 1, body.value)] }
  const isLast = iteration >= node.max_iterations
  if (node.until === undefined) return isLast ? { end: endOf(body.value, children.values()) } : again
  const verdict = children.get(`until ${iteration}`)
  if (verdict === undefined) {
    const item = { output: body.value, iteration }
    return { start: [{ key: `until ${iteration}`, node: leafOf(node.until), previous: body.value, item }] }
  }
  if (verdict?.status === 'failed') return { end: failed(verdict.error) }
  return isLast || isTrue(verdict?.value) ? { end: endOf(body.value, children.values()) } : again
}

const bodyOf = ({ body }: Loop, iteration: number, previous: unknown): Child => ({
  key: String(iteration),
  node: body,
  isOwn: true,
  iteration,
  previous,
})
