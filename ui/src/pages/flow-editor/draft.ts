// Unsaved changes outlive a reload, the end of a session and a visit to the run that was started from here.
import { useEffect } from 'react'
import { type Flowing, isSameFlow } from './editing.ts'

const PREFIX = 'muster-flow-draft'
const PAUSE_MS = 500

/** `of`: the id of the flow, or what a new flow began with. Each person has drafts of their own. */
export const draftKey = (userId: string | null, projectId: string, of: string): string =>
  [PREFIX, userId ?? 'admin', projectId, of].join(':')

interface Draft extends Flowing {
  /** The time of the stored flow that was changed. */
  since: string | null
}

/** Null: there is none, or it is no different from the flow. */
export function readDraft(key: string, than: Flowing): Draft | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(key) ?? 'null') as Draft | null // written below
    return kept === null || typeof kept.name !== 'string' || isSameFlow(kept, than) ? null : kept
  } catch {
    return null
  }
}

export function dropDraft(key: string): void {
  sessionStorage.removeItem(key)
}

/** Keeps the draft while it is wanted. A storage that is full or forbidden keeps none. */
export function useKeptDraft(key: string, { name, root, since }: Draft, isWanted: boolean): void {
  useEffect(() => {
    if (!isWanted) {
      dropDraft(key)
      return
    }
    const keep = (): void => {
      try {
        sessionStorage.setItem(key, JSON.stringify({ name, root, since } satisfies Draft))
      } catch {
        dropDraft(key)
      }
    }
    const timer = setTimeout(keep, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [key, name, root, since, isWanted])
}
