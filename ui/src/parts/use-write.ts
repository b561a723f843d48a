// The one way in which a page changes something: the typed text stays, a refusal is shown, and the change is read.

import { notifications } from '@mantine/notifications'
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { errorText } from '../../../src/kernel/error-text.ts'

interface Options {
  /** The queries that are read again after a success. */
  reads?: readonly QueryKey[]
  /** True: a refusal is told in a notification, because the page has no place for it. */
  isToldAside?: boolean
}

export interface Write {
  isBusy: boolean
  /** Why the last attempt failed, in words for people. */
  problem: string | null
  error: unknown
  /**
   * Does the work, and never throws. `says` is the sentence that tells people of the success. Returns whether the work was
   * done.
   */
  write: <Answer>(work: () => Promise<Answer>, says?: string | ((answer: Answer) => string)) => Promise<boolean>
}

/** Tells people a sentence that stays for a few seconds. */
export const tell = (message: string): void => void notifications.show({ message })
export const tellProblem = (error: unknown): void =>
  void notifications.show({ color: 'red', message: errorText(error) })

export function useWrite({ reads = [], isToldAside = false }: Options = {}): Write {
  const client = useQueryClient()
  const [isBusy, setIsBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const write: Write['write'] = async (work, says) => {
    setIsBusy(true)
    setError(null)
    try {
      const answer = await work()
      if (says !== undefined) tell(typeof says === 'string' ? says : says(answer))
      await Promise.all(reads.map((queryKey) => client.invalidateQueries({ queryKey })))
      return true
    } catch (failure) {
      setError(failure)
      if (isToldAside) tellProblem(failure)
      return false
    } finally {
      setIsBusy(false)
    }
  }
  return { isBusy, problem: error === null ? null : errorText(error), error, write }
}
