import { createContext, use } from 'react'
import type { OfType } from '../../../../src/kernel/genui.ts'

/** An action that decides on a task. `open` is a link. */
export type Action = Exclude<OfType<'button'>['action'], { type: 'open' }>

interface State {
  projectId: string
  isBusy: boolean
  /** The values of inputs and selects by their ids. */
  values: ReadonlyMap<string, string>
  /** The field that an action needs and that is empty. */
  missing: string | null
  setValue: (id: string, value: string) => void
  act: (action: Action) => void
}

export const LayoutState = createContext<State | null>(null)

export function useLayoutState(): State {
  const state = use(LayoutState)
  if (!state) throw new Error('a part of a layout is drawn outside of a layout')
  return state
}
