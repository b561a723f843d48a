// The flow runs that this process works on, each with its mailbox.
import type { ClaimedFlow } from './claim.ts'
import { createMailbox, type Mailbox } from './mailbox.ts'
import type { FlowMessage } from './owned-flow.ts'

export type FlowsInHand = ReturnType<typeof createFlowsInHand>

export function createFlowsInHand() {
  const held = new Map<string, { mailbox: Mailbox<FlowMessage>; projectId: string }>()
  let isHandedBack = false
  const putAll = (message: FlowMessage): void => {
    for (const { mailbox } of held.values()) mailbox.put(message)
  }
  return {
    hold: async (flow: ClaimedFlow, work: (mailbox: Mailbox<FlowMessage>) => Promise<boolean>): Promise<boolean> => {
      const mailbox = createMailbox<FlowMessage>()
      // This process may have owned the flow run before, and lost it without knowing.
      held.get(flow.id)?.mailbox.put({ type: 'lapse' })
      held.set(flow.id, { mailbox, projectId: flow.project_id })
      if (isHandedBack) mailbox.put({ type: 'hand_back', isUrgent: true })
      try {
        return await work(mailbox)
      } finally {
        if (held.get(flow.id)?.mailbox === mailbox) held.delete(flow.id)
      }
    },
    /** False: this process does not work on that flow run. */
    put: (flowRunId: string, message: FlowMessage): boolean => {
      held.get(flowRunId)?.mailbox.put(message)
      return held.has(flowRunId)
    },
    putAll,
    /** All flow runs, and those that are taken from now on, are handed back. */
    handBack: (isUrgent: boolean): void => {
      isHandedBack = true
      putAll({ type: 'hand_back', isUrgent })
    },
    leaveDeleted: (projectIds: ReadonlySet<string>): void => {
      for (const { mailbox, projectId } of held.values()) if (projectIds.has(projectId)) mailbox.put({ type: 'lapse' })
    },
  }
}
