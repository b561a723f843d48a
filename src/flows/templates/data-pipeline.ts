import type { FlowTemplate } from './template.ts'

export const dataPipeline: FlowTemplate = {
  name: 'data_pipeline',
  title: 'Data pipeline',
  description: 'Records stream through extract, transform and load; a record that fails is left out and counted.',
  usage:
    'Input: {records}, a list of texts or objects. Output: the loaded records in the order they were given. To read from a source of your own, let source name a function of your app module that gives a list or an async iterable; to write somewhere, replace muster.identity in the stage load by a function of yours.',
  pattern: 'pipeline',
  example: {
    input: {
      records: ['Ada Lovelace, born 10 December 1815 in London', 'Grace Hopper, born in New York City on 9 Dec. 1906'],
    },
  },
  root: {
    type: 'pipeline',
    source: '{{input.records}}',
    stages: [
      {
        type: 'task',
        id: 'extract',
        function: 'muster.ask',
        args: { prompt: 'Extract the facts from this record, one per line as "name: value".', input: '{{item}}' },
        retry: { max_retries: 2, backoff: 2_000 },
      },
      {
        type: 'task',
        id: 'transform',
        function: 'muster.ask',
        args: {
          prompt:
            'Turn these facts into one JSON object with names in snake_case and dates as YYYY-MM-DD. Answer with the JSON alone.',
          input: '{{item}}',
        },
        retry: { max_retries: 2, backoff: 2_000 },
      },
      { type: 'task', id: 'load', function: 'muster.identity', args: '{{item}}' },
    ],
    buffer: 100,
    on_error: 'skip',
  },
}
