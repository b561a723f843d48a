// All that the panels of the editor share: the flow as it stands, the ways to change it, and its problems.
import { useDebouncedValue } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { type Dispatch, useMemo, useReducer } from 'react'
import { verdictQuery } from '../../api/flow-definitions.ts'
import { type Action, type Editing, editingOf, type Flowing, nextEditing } from './editing.ts'
import { type PlacedProblem, placeProblems } from './problems.ts'
import { valueAt, withValue } from './tree.ts'
import type { Edit } from './tree-edits.ts'

/** Validation follows typing after this pause. */
const PAUSE_MS = 400

export interface Editor {
  projectId: string
  state: Editing
  dispatch: Dispatch<Action>
  root: unknown
  /** The path and the value of the chosen node. */
  selected: string
  node: unknown
  /** Tree and form cannot be changed: the person may not, or the JSON must be mended first. */
  isLocked: boolean
  isReadOnly: boolean
  problems: readonly PlacedProblem[]
  /** Told of a flow that can be started: the steps that will fail. */
  warnings: readonly PlacedProblem[]
  /** Both, for the fields that they are about. */
  marks: readonly PlacedProblem[]
  check: { isPending: boolean; error: Error | null; isValid: boolean; retry: () => void }
  /** Makes an edit of the tree, if it can be done. */
  apply: (edit: Edit | null) => void
  /** Changes a field of the chosen node. Undefined takes the field away. */
  setField: (name: string, value: unknown) => void
  setNode: (value: unknown, tag?: string) => void
}

export function useEditor(projectId: string, initial: Flowing, isReadOnly: boolean): Editor {
  const [state, dispatch] = useReducer(nextEditing, initial, editingOf)
  const { root, selected } = state.now
  const [settledRoot] = useDebouncedValue(root, PAUSE_MS)
  const verdict = useQuery({ ...verdictQuery(projectId, settledRoot), placeholderData: keepPreviousData })
  const { errors, warnings: warned } = verdict.data ?? {}
  const problems = useMemo(() => placeProblems(root, errors ?? []), [root, errors])
  const warnings = useMemo(() => placeProblems(root, warned ?? []), [root, warned])
  const isLocked = isReadOnly || state.problem !== null
  const path = (name: string): string => `${selected}.${name}`
  return {
    projectId,
    state,
    dispatch,
    root,
    selected,
    isLocked,
    isReadOnly,
    problems,
    warnings,
    marks: useMemo(() => [...problems, ...warnings], [problems, warnings]),
    node: useMemo(() => valueAt(root, selected), [root, selected]),
    check: {
      isPending: root !== settledRoot || verdict.isFetching,
      error: verdict.error,
      isValid: verdict.data?.valid === true,
      retry: () => void verdict.refetch(),
    },
    apply: (edit) => {
      if (edit && !isLocked) dispatch({ type: 'edit', ...edit })
    },
    setField: (name, value) =>
      dispatch({ type: 'edit', root: withValue(root, path(name), value), path: selected, tag: path(name) }),
    setNode: (value, tag) =>
      dispatch({
        type: 'edit',
        root: withValue(root, selected, value),
        path: selected,
        ...(tag === undefined ? {} : { tag: path(tag) }),
      }),
  }
}
