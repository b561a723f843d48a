import type { Hub } from '../journal/hub.ts'
import type { LiveTexts } from '../journal/live-text.ts'
import { createRunControl, type Interruption, type RunControl } from './run-control.ts'

export interface RunInHand {
  id: string
  project_id: string
  ancestors: readonly string[]
}

interface Held {
  control: RunControl
  run: RunInHand
}

export type RunsInHand = ReturnType<typeof createRunsInHand>

export function createRunsInHand({ hub, texts }: { hub: Hub; texts: () => LiveTexts }) {
  const held = new Map<string, Held>()
  let isYielding = false
  return {
    hold: async <Result>(run: RunInHand, work: (control: RunControl) => Promise<Result>): Promise<Result> => {
      const control = createRunControl()
      held.set(run.id, { control, run })
      // The run was claimed while this process began to stop.
      if (isYielding) control.askToYield()
      hub.poke(run.id)
      try {
        return await work(control)
      } finally {
        // A run that was lost may have been claimed here again meanwhile.
        if (held.get(run.id)?.control === control) {
          held.delete(run.id)
          texts().drop(run.id)
        }
      }
    },
    ancestorsOf: (runId: string): readonly string[] => held.get(runId)?.run.ancestors ?? [],
    interrupt: (runId: string, why: Interruption): void => held.get(runId)?.control.interrupt(why),
    askToStop: (runId: string): void => held.get(runId)?.control.askToStop(),
    interruptAll: (why: Interruption): void => {
      for (const { control } of held.values()) control.interrupt(why)
    },
    /** Asks all runs, and those that are taken from now on, to give their slots back at their next step. */
    yieldAll: (): void => {
      isYielding = true
      for (const { control } of held.values()) control.askToYield()
    },
    /** Cuts off the calls of deleted projects. Nothing more is written, because the rows are about to be removed. */
    leaveDeleted: (projectIds: ReadonlySet<string>): void => {
      for (const { control, run } of held.values()) if (projectIds.has(run.project_id)) control.interrupt('lapse')
    },
  }
}
