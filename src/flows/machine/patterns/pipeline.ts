import { z } from 'zod'
import { countField, leafField, sharedFields } from '../../../kernel/flow.ts'
import { callOf } from '../move.ts'
import type { Pattern, PatternGuide } from '../pattern.ts'
import { sourceParts } from '../source.ts'
import { itemsOf, MANY, PUT_TOGETHER, type Suits, stepsOf } from '../workload.ts'

const schema = z.strictObject({
  type: z.literal('pipeline'),
  ...sharedFields,
  source: z.unknown(),
  stages: z.array(leafField).min(1).max(100),
  buffer: countField.optional(),
  on_error: z.enum(['stop', 'skip']).default('stop'),
})
export type Pipeline = z.infer<typeof schema>
export type PipelineInput = z.input<typeof schema>

const guide: PatternGuide = {
  text: 'Passes every item through the stages, one stage after the other. Several items are under way at once, each in another stage. A stage finds the result of the stage before in `{{item}}`; the first stage finds the item itself. The output is the list of the results of the last stage, in the order of the source.',
  fields: {
    source:
      'The items: a list, a template, or a function that gives a list or an (async) iterable: its name, or `{"function": …, "args": …}`.',
    stages: 'Leaves, in their order.',
    buffer: 'The most items that wait between two stages. The default is the setting `pipeline_buffer` of the project.',
    on_error:
      '`stop` (the default): an item that fails ends the node. `skip`: the item is left out and counted, and the flow goes on.',
  },
  example: {
    input: { tickets: ['The app does not start.', 'Please send an invoice.'] },
    root: {
      type: 'pipeline',
      source: '{{input.tickets}}',
      stages: [
        {
          type: 'task',
          id: 'classify',
          function: 'muster.ask',
          args: { prompt: 'Which team should answer this ticket?', input: '{{item}}' },
        },
        {
          type: 'task',
          id: 'reply',
          function: 'muster.ask',
          args: { prompt: 'Write a first reply in the name of this team.', input: '{{item}}' },
        },
      ],
      on_error: 'skip',
    },
  },
}

const suits: Suits = {
  summary: 'items that pass the same stages one after the other as they arrive',
  rank: 2,
  cues: [
    { weight: 10, speaks: /\b(pipelines?|etl)\b/i, because: 'the description names it' },
    {
      weight: 6,
      speaks:
        /\b(stream(s|ing|ed)?|real[\s-]?time|continuous(ly)?|as (they|it) (arrive|come)s?( in)?|incoming|back-?pressure|feeds?|monitor(s|ing)?)\b/i,
      because: 'items arrive over time and pass through stages',
    },
    {
      weight: 6,
      speaks:
        /\bextract\w*\b.{1,200}\btransform\w*\b.{1,200}\bload|\bparse\b.{1,200}\b(transform|validate|clean|enrich)\b/is,
      because: 'each item passes the same stages one after the other',
    },
    {
      weight: 5,
      speaks: ({ items, steps, stepCount, text }) =>
        (items ?? 0) >= MANY && Math.max(steps.length, stepCount ?? 0) >= 3 && !PUT_TOGETHER.test(text),
      because: 'many items go through several steps, and a later step need not wait for all of them',
    },
  ],
  plan: (facts) => {
    const items = itemsOf(facts)
    const stages = stepsOf(facts).map((prompt) => callOf('muster.ask', { prompt, input: '{{item}}' }))
    const definition: Pipeline = { type: 'pipeline', source: '{{input.items}}', stages, on_error: 'skip' }
    // One worker per stage: while the last works on an item, the first is as many items further as there are stages.
    return { definition, workers: stages.length, calls: items * stages.length, rounds: items + stages.length - 1 }
  },
}

/** Items pass through the stages one after the other, while each stage works on another item (flows/pipeline/). */
export const pipeline: Pattern<Pipeline> = {
  type: 'pipeline',
  schema,
  stream: (node) => node,
  parts: ({ source, stages }) => [
    ...sourceParts('source', source),
    ...stages.map((work, index) => ({ field: 'stages', index, key: String(index), work })),
  ],
  turnOf: (key) => Number(key) || 0,
  plannedLeaves: ({ stages }) => stages.length,
  expectedMs: ({ source, stages }, times) => {
    const each = stages.map((stage) => times.work(stage))
    // All stages wait for the slowest, and the last item goes through every stage.
    return times.inTurn(each) + Math.max(0, times.count(source) - 1) * Math.max(...each)
  },
  functionFields: ['source', 'stages'],
  suits,
  guide,
}
