import { z } from 'zod'
import { type FlowNode, innerField, sharedFields } from '../../../kernel/flow.ts'
import { callOf, endOf, failed } from '../move.ts'
import { numbered, type Pattern, type PatternGuide } from '../pattern.ts'
import { promptOf, type Suits, stepsOf } from '../workload.ts'

const schema = z.strictObject({ type: z.literal('sequential'), ...sharedFields, steps: z.array(innerField).min(1) })
export interface Sequential<Inner = FlowNode> extends Omit<z.infer<typeof schema>, 'steps'> {
  steps: Inner[]
}
export interface SequentialInput<Inner> extends Omit<z.input<typeof schema>, 'steps'> {
  steps: Inner[]
}

const guide: PatternGuide = {
  text: 'Runs its steps one after the other. Each step finds the result of the step before in `{{previous}}`, and the result of any earlier step in `{{results.<id>}}`. The output is the output of the last step. A step that fails ends the node.',
  fields: { steps: 'The nodes to run, in their order. A step may be a pattern itself.' },
  example: {
    input: { topic: 'green tea' },
    root: {
      type: 'sequential',
      steps: [
        {
          type: 'task',
          id: 'outline',
          function: 'muster.ask',
          args: { prompt: 'Make an outline of a short text about {{input.topic}}.' },
        },
        {
          type: 'task',
          id: 'text',
          function: 'muster.ask',
          args: { prompt: 'Write the text by this outline.', input: '{{previous}}' },
        },
        {
          type: 'task',
          id: 'title',
          function: 'muster.ask',
          args: { prompt: 'Find a title for this text about {{input.topic}}.', input: '{{results.text}}' },
        },
      ],
    },
  },
}

const suits: Suits = {
  summary: 'steps one after the other, each with the result of the one before',
  rank: 8,
  cues: [
    {
      weight: 5,
      speaks: /\b(in order|step by step|one after (the other|another)|sequential(ly)?|depends? on|in sequence)\b/i,
      because: 'there is an order to be kept',
    },
    {
      weight: 3,
      speaks: ({ steps, stepCount }) => steps.length > 1 || (stepCount ?? 0) > 1,
      because: 'a step needs the result of the step before',
    },
  ],
  plan: (facts) => {
    const isOrdered = facts.steps.length > 1 || facts.stepCount !== null
    const prompts = isOrdered ? stepsOf(facts) : planDoCheck(promptOf(facts))
    const steps = prompts.map((prompt) => callOf('muster.ask', { prompt, input: '{{previous}}' }))
    const definition: Sequential = { type: 'sequential', steps }
    return { definition, workers: 1, calls: steps.length, rounds: steps.length }
  },
  counts: () => '',
}

const planDoCheck = (what: string): string[] => [
  `Plan how this is best done: ${what}`,
  `Do this by the plan: ${what}`,
  `Check the result and mend what is wrong with it. It was asked for: ${what}`,
]

/** Runs the steps one after the other, each with the result of the one before. A step that fails ends the node. */
export const sequential: Pattern<Sequential> = {
  type: 'sequential',
  schema,
  next: ({ node, previous, children, open }) => {
    if (open > 0) return 'wait'
    const place = children.size
    const last = place === 0 ? null : children.get(String(place - 1))
    if (last?.status === 'failed') return { end: failed(last.error) }
    const value = last ? last.value : previous
    const next = node.steps[place]
    if (!next) return { end: endOf(value, children.values()) }
    return { start: [{ key: String(place), node: next, isOwn: true, previous: value }] }
  },
  parts: ({ steps }) => numbered('steps', steps),
  turnOf: (key) => Number(key) || 0,
  expectedMs: ({ steps }, times) => times.inTurn(steps.map(times.of)),
  suits,
  guide,
}
