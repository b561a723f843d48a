import type { FlowTemplate } from './template.ts'

export const codeReview: FlowTemplate = {
  name: 'code_review',
  title: 'Code review',
  description: 'Fetches a change in parts that fit a prompt, reviews each part, and puts the findings into one review.',
  usage:
    'Input: {diff}, the change as text, such as the output of git diff. Output: the review as text; the findings per part stand in results.review. To read the change from your repository, put a function of your app module that gives a list of texts in place of the first step.',
  pattern: 'sequential',
  example: {
    input: {
      diff: '--- a/total.ts\n+++ b/total.ts\n@@ -1,3 +1,3 @@\n-for (let i = 0; i < prices.length; i++) total += prices[i]\n+for (let i = 0; i <= prices.length; i++) total += prices[i]\n',
    },
  },
  root: {
    type: 'sequential',
    steps: [
      { type: 'task', id: 'fetch', function: 'muster.chunk', args: { of: '{{input.diff}}', size: 20_000 } },
      {
        type: 'task',
        id: 'review',
        function: 'muster.ask_each',
        args: {
          prompt:
            'Review this part of a change as an experienced engineer. Name each defect with its file and line, how it fails and how to mend it; then what is risky or hard to read. Say so where there is nothing to find.',
          items: '{{previous}}',
        },
        retry: { max_retries: 2, backoff: 2_000 },
      },
      {
        type: 'task',
        id: 'aggregate',
        function: 'muster.condense',
        args: {
          prompt:
            'Put these findings of a code review into one review: the most serious first, each only once, and last whether the change may be merged.',
          items: '{{previous}}',
        },
        retry: { max_retries: 2, backoff: 2_000 },
      },
    ],
  },
}
