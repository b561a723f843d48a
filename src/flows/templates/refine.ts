import type { FlowTemplate } from './template.ts'

export const refine: FlowTemplate = {
  name: 'refine',
  title: 'Refine until good enough',
  description: 'Writes a draft and makes it better, round after round, until a judge finds it good enough.',
  usage:
    'Input: {task, criteria}. Output: the last draft. After max_iterations rounds it is handed over as it is. To measure instead of judge, let until be a function of your app module that takes {output, iteration} and gives true or false.',
  pattern: 'loop',
  example: {
    input: {
      task: 'Write a notice for the lift: out of order until Friday.',
      criteria: 'Friendly, at most thirty words, says where the stairs are.',
    },
  },
  root: {
    type: 'loop',
    body: {
      type: 'task',
      id: 'draft',
      function: 'muster.ask',
      args: {
        prompt:
          'Do the task so that it meets the criteria. Where there is a draft, make it better. Answer with the result alone.',
        input: { task: '{{input.task}}', criteria: '{{input.criteria}}', draft: '{{results.draft?}}' },
      },
      retry: { max_retries: 2, backoff: 2_000 },
    },
    max_iterations: 5,
    until: {
      type: 'task',
      function: 'muster.ask',
      args: {
        prompt: 'Does this draft meet the criteria? Begin your answer with yes or no.',
        input: { criteria: '{{input.criteria}}', draft: '{{item.output}}' },
      },
      retry: { max_retries: 2, backoff: 2_000 },
    },
  },
}
