// Flow runs of a project as a client of the API starts and follows them.
import assert from 'node:assert/strict'
import type { FlowTask } from '../../src/flows/history/trace.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { TestApp } from './app.ts'

export interface FlowEventShown {
  event: string
  data: Record<string, unknown>
}

export interface FlowCalls {
  /** The path of the project's flow runs. */
  runs: string
  start(root: object, more?: object): Promise<FlowRun>
  read(id: string): Promise<FlowRun>
  /** Polls until the condition holds; no time is measured. */
  until(id: string, holds: (run: FlowRun) => boolean): Promise<FlowRun>
  ended(id: string): Promise<FlowRun>
  play(root: object, more?: object): Promise<FlowRun>
  tasksOf(id: string): Promise<FlowTask[]>
  /** All events of a flow run, after the flow run has ended. */
  eventsOf(id: string): Promise<FlowEventShown[]>
}

export function flowCalls({ call }: Pick<TestApp, 'call'>, projectId: string): FlowCalls {
  const runs = `/api/projects/${projectId}/flow-runs`
  const start: FlowCalls['start'] = async (root, more = {}) => {
    const { status, body, text } = await call<FlowRun>(`POST ${runs}`, { body: { root, ...more } })
    assert.equal(status, 202, text)
    return body
  }
  const read: FlowCalls['read'] = async (id) => (await call<FlowRun>(`GET ${runs}/${id}`)).body
  const until: FlowCalls['until'] = async (id, holds) => {
    for (;;) {
      const run = await read(id)
      if (holds(run)) return run
      await new Promise(setImmediate)
    }
  }
  const ended: FlowCalls['ended'] = (id) => until(id, ({ completed_at }) => completed_at !== null)
  return {
    runs,
    start,
    read,
    until,
    ended,
    play: async (root, more = {}) => ended((await start(root, more)).id),
    tasksOf: async (id) => (await call<{ items: FlowTask[] }>(`GET ${runs}/${id}/tasks?limit=200`)).body.items,
    eventsOf: async (id) => {
      const { text } = await call(`GET ${runs}/${id}/events`)
      return [...text.matchAll(/^event: (.*)\ndata: (.*)$/gm)].map(([, event = '', data = '']) => ({
        event,
        data: JSON.parse(data),
      }))
    },
  }
}
