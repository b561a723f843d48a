import type { FlowTemplate } from './template.ts'

export const queenLedAnalysis: FlowTemplate = {
  name: 'queen_led_analysis',
  title: 'Queen-led analysis',
  description:
    'A lead breaks a goal down into subtasks, workers carry them out at once, and the lead writes the report.',
  usage:
    'Input: {goal, material?}. Output: the report as text; the plan stands in results.plan. With agents of your own, use the pattern hierarchical instead: its queen also minds dependencies, slow workers and whether the report is good enough.',
  pattern: 'sequential',
  example: {
    input: {
      goal: 'Analyze this service for security issues',
      material: 'A web shop: Node.js, sessions in cookies, passwords as SHA-1, card numbers in the log.',
    },
  },
  root: {
    type: 'sequential',
    steps: [
      {
        type: 'task',
        id: 'plan',
        function: 'muster.ask_list',
        args: {
          prompt:
            'You lead a team. Break this goal down into subtasks that can be worked on independently, each a brief that stands by itself.',
          input: '{{input}}',
          most: 6,
        },
        retry: { max_retries: 2, backoff: 2_000 },
      },
      {
        type: 'map_reduce',
        id: 'work',
        items: '{{previous}}',
        workers: 6,
        map: {
          type: 'task',
          function: 'muster.ask',
          args: {
            prompt: 'You are one of a team. Carry out your subtask, and say what you found and how sure you are.',
            input: { subtask: '{{item.items}}', goal: '{{input.goal}}', material: '{{input.material?}}' },
          },
          retry: { max_retries: 2, backoff: 2_000 },
        },
        reduce: {
          type: 'task',
          function: 'muster.condense',
          args: {
            prompt:
              'You lead a team that worked on this goal: {{input.goal}} Put what they found together into one report, and say what is missing in it.',
            items: '{{item.values}}',
          },
          retry: { max_retries: 2, backoff: 2_000 },
        },
      },
    ],
  },
}
