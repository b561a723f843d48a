import type { FlowTemplate } from './template.ts'

export const documentSummary: FlowTemplate = {
  name: 'document_summary',
  title: 'Summary of many documents',
  description: 'Summarizes every document by itself, shared out among workers, then all summaries into one.',
  usage:
    'Input: {documents}, a list of texts. Output: the summary as text. Raise workers for more documents: each takes an equal part of them. To read documents from elsewhere, let items name a function of your app module that gives a list.',
  pattern: 'map_reduce',
  example: {
    input: {
      documents: [
        'In the first quarter the sales in the north rose by a tenth; the south stayed level.',
        'In the second quarter the south caught up, after the new depot had opened.',
        'In the third quarter both fell a little, as they do every summer.',
      ],
    },
  },
  root: {
    type: 'map_reduce',
    items: '{{input.documents}}',
    workers: 10,
    map: {
      type: 'task',
      function: 'muster.ask_each',
      args: { prompt: 'Summarize this document in five sentences at most.', items: '{{item.items}}' },
      retry: { max_retries: 2, backoff: 2_000 },
    },
    reduce: {
      type: 'task',
      function: 'muster.condense',
      args: {
        prompt: 'Put these summaries of single documents into one summary of them all.',
        items: '{{item.values}}',
      },
      retry: { max_retries: 2, backoff: 2_000 },
    },
  },
}
