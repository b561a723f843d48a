import { useState } from 'react'
import { type Draft, inMode, newDraft, type Problems, problemsAt, readDraft } from './draft.ts'

type Properties = Record<string, unknown>
const NONE: Problems = new Map()

/** A draft of properties with the problems of its fields. `read` gives the properties, or null and shows the problems. */
export function useDraft(stored: Properties) {
  const [draft, setDraft] = useState<Draft>(() => newDraft(stored))
  const [problems, setProblems] = useState<Problems>(NONE)
  const read = (): Properties | null => {
    const given = readDraft(draft)
    setProblems('problems' in given ? given.problems : NONE)
    return 'properties' in given ? given.properties : null
  }
  const switchTo = (mode: Draft['mode']): void => {
    const given = inMode(draft, mode, stored)
    setProblems('problems' in given ? given.problems : NONE)
    if (!('problems' in given)) setDraft(given)
  }
  return {
    read,
    /** Shows a problem of the whole draft. */
    refuse: (message: string) => setProblems(new Map([['json', message]])),
    refuseAt: (issues: ReadonlyMap<string, string>) => setProblems(problemsAt(draft, issues)),
    editor: { draft, problems, onChange: setDraft, onMode: switchTo },
  }
}
