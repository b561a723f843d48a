import type { FunctionLeaf } from '../../kernel/flow.ts'
import type { FlowTemplate } from './template.ts'

const test = (id: string, what: string): FunctionLeaf => ({
  type: 'task',
  id,
  function: 'muster.ask',
  args: {
    prompt: `Test the following ${what} Say PASS or FAIL in the first line, then each problem with the input that shows it.`,
    input: '{{input.subject}}',
  },
  retry: { max_retries: 2, backoff: 2_000 },
})

export const swarmTest: FlowTemplate = {
  name: 'swarm_test',
  title: 'Swarm test',
  description: 'Runs all tests of one subject at once, each with another eye, and gives one verdict.',
  usage:
    'Input: {subject}: code, a text, a plan, a prompt. Output: the verdict as text; what each test found stands in results under its id. A test that fails to run leaves the others alone. Add a branch per test of your own; a branch may name a function of your app module that runs a real test suite.',
  pattern: 'parallel',
  example: {
    input: { subject: 'function isLeap(year) { return year % 4 === 0 && year % 100 !== 0 }' },
  },
  root: {
    type: 'parallel',
    branches: [
      test('correctness', 'for correctness: does it do what it says, in ordinary cases?'),
      test('edge_cases', 'at its edges: nothing, one, very many, the largest and the malformed.'),
      test('security', 'for security: what can someone do with it who means harm?'),
      test('performance', 'for performance: what becomes of it under a thousand times the load?'),
      test('clarity', 'for clarity: what would a newcomer misread in it?'),
    ],
    aggregate: {
      type: 'task',
      function: 'muster.condense',
      args: {
        prompt:
          'Put what these tests found into one verdict: first PASS or FAIL, then the problems, most serious first.',
        items: '{{item}}',
      },
      retry: { max_retries: 2, backoff: 2_000 },
    },
  },
}
