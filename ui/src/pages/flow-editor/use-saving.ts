// Saves the flow. A change that somebody else made meanwhile is not overwritten without a question.
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { errorText } from '../../../../src/kernel/error-text.ts'
import { ApiError } from '../../api/client.ts'
import {
  changeDefinition,
  createDefinition,
  definitionQuery,
  type FlowDefinition,
  readDefinition,
} from '../../api/flow-definitions.ts'
import { tell } from '../../parts/use-write.ts'
import { dropDraft } from './draft.ts'
import { type Flowing, isSameFlow } from './editing.ts'

export interface Saving {
  isBusy: boolean
  /** The problem of the name stands beside its field. */
  nameProblem: string | null
  problem: string | null
  /** The flow as somebody else saved it after it was opened here. */
  theirs: FlowDefinition | null
  save: (options?: { over?: boolean }) => void
  forget: () => void
}

interface Options {
  projectId: string
  /** The stored flow as it was opened or last saved here. Null for a new one. */
  base: FlowDefinition | null
  flow: Flowing
  key: string
  onSaved: (flow: FlowDefinition) => void
}

/** A refusal holds for the flow as it was sent: a change of the name or of the tree makes it old. */
interface Refusal {
  flow: Flowing
  isAboutName: boolean
  text: string
}

export function useSaving({ projectId, base, flow, key, onSaved }: Options): Saving {
  const client = useQueryClient()
  const navigate = useNavigate()
  const [isBusy, setIsBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const [theirs, setTheirs] = useState<FlowDefinition | null>(null)
  const name = flow.name.trim()
  const forget = (): void => {
    setRefusal(null)
    setTheirs(null)
  }
  const write = async (over: boolean): Promise<void> => {
    if (base === null) {
      const made = await createDefinition(projectId, { name, root: flow.root })
      await known(made)
      dropDraft(key)
      const params = { projectId, flowId: made.id }
      await navigate({
        to: '/projects/$projectId/flows/definitions/$flowId',
        params,
        replace: true,
        ignoreBlocker: true,
      })
      return
    }
    const stored = over ? base : await readDefinition(projectId, base.id)
    if (stored.updated_at !== base.updated_at) return setTheirs(stored)
    const isSameTree = isSameFlow({ name, root: base.root }, { name, root: flow.root })
    const saved = await changeDefinition(base, {
      ...(name === base.name ? {} : { name }),
      ...(isSameTree && !over ? {} : { root: flow.root }),
    })
    await known(saved)
    onSaved(saved)
  }
  const known = async (saved: FlowDefinition): Promise<void> => {
    client.setQueryData(definitionQuery(projectId, saved.id).queryKey, saved)
    void client.invalidateQueries({ queryKey: ['flow', projectId, 'list'] })
    tell(`${saved.name} is saved.`)
  }
  const save = async (over: boolean): Promise<void> => {
    forget()
    if (name === '') return setRefusal({ flow, isAboutName: true, text: 'Give the flow a name.' })
    setIsBusy(true)
    try {
      await write(over)
    } catch (error) {
      setRefusal({ flow, isAboutName: isAboutName(error), text: errorText(error) })
    } finally {
      setIsBusy(false)
    }
  }
  const nameProblem = refusal?.isAboutName && refusal.flow.name === flow.name ? refusal.text : null
  const problem = refusal && !refusal.isAboutName && refusal.flow.root === flow.root ? refusal.text : null
  return { isBusy, nameProblem, problem, theirs, forget, save: ({ over = false } = {}) => void save(over) }
}

/** The name is taken, or an agent is this flow and knows it by its name. */
const isAboutName = (error: unknown): boolean =>
  error instanceof ApiError && error.status === 409 && /already|renamed/.test(error.message)
