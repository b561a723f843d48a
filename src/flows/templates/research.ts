import type { FlowTemplate } from './template.ts'

export const research: FlowTemplate = {
  name: 'research',
  title: 'Research',
  description: 'Gathers the sources that bear on a question, analyzes each by itself, and synthesizes one answer.',
  usage:
    'Input: {question, sources?}; sources is whatever is known already: texts, addresses, notes. Output: the answer as text. To search for sources, let split be a function of your app module that takes {question, sources} and gives a list of texts.',
  pattern: 'fork_join',
  example: {
    input: {
      question: 'Does working four days a week change what a team gets done?',
      sources: ['Iceland, public sector trials, 2015 to 2019', 'United Kingdom, pilot with 61 companies, 2022'],
    },
  },
  root: {
    type: 'fork_join',
    problem: { question: '{{input.question}}', sources: '{{input.sources?}}' },
    // Only the whole has a question; the gathered sources are texts, which are analyzed as they are.
    should_split: {
      type: 'task',
      function: 'muster.is_larger',
      args: { of: '{{item.question?}}', than: 0 },
    },
    split: {
      type: 'task',
      function: 'muster.ask_list',
      args: {
        prompt:
          'Gather what should be read to answer this question: the given sources that bear on it, then others you know of. Name each with what it holds.',
        input: '{{item}}',
        most: 8,
      },
      retry: { max_retries: 2, backoff: 2_000 },
    },
    solve: {
      type: 'task',
      function: 'muster.ask',
      args: {
        prompt: 'Analyze what this source says about the question, how sure it is, and what it leaves open.',
        input: { question: '{{input.question}}', source: '{{item}}' },
      },
      retry: { max_retries: 2, backoff: 2_000 },
    },
    join: {
      type: 'task',
      function: 'muster.condense',
      args: {
        prompt:
          'Synthesize one answer from these analyses: what they agree on, where they differ and why, and what is not known. The question: {{input.question}}',
        items: '{{item}}',
      },
      retry: { max_retries: 2, backoff: 2_000 },
    },
    workers: 4,
    stealing: true,
  },
}
