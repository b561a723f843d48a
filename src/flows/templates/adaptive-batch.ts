import type { FunctionLeaf } from '../../kernel/flow.ts'
import type { FlowTemplate } from './template.ts'

const TASKS = 8

const task = (place: number): FunctionLeaf => ({
  type: 'task',
  id: `share_${place + 1}`,
  function: 'muster.ask_each',
  args: { prompt: '{{input.prompt}}', items: '{{input.items}}', share: { of: TASKS, place } },
  retry: { max_retries: 2, backoff: 2_000 },
})

export const adaptiveBatch: FlowTemplate = {
  name: 'adaptive_batch',
  title: 'Adaptive batch',
  description: 'Works through items whose effort varies, with workers that are arranged anew when some are overloaded.',
  usage:
    'Input: {prompt, items}: the prompt is asked about every item. Output: a list of answers per task, in the order of the items. Change the number of workers, or the topology it starts with; each task takes an equal part of the items.',
  pattern: 'adaptive',
  example: {
    input: {
      prompt: 'Which team should answer this message: billing, delivery or technical? Answer with one word.',
      items: ['My parcel never came.', 'I was charged twice.', 'The app closes when I log in.'],
    },
  },
  root: {
    type: 'adaptive',
    topology: 'hierarchical',
    workers: 4,
    tasks: Array.from({ length: TASKS }, (_, place) => task(place)),
    switch: true,
    workload: 'adaptive_batch',
  },
}
