// The one way in which a page changes something: the typed text stays, a refusal is shown, and the change is read.

import { notifications } from '@mantine/notifications'
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { errorText } from '../../../src/kernel/error-text.ts'
import { refusalOf } from '../api/issues.ts'

interface Options {
  /** The queries that are read again after a success. */
  reads?: readonly QueryKey[]
  /** True: a refusal is told in a notification, because the page has no place for it. */
  isToldAside?: boolean
  /** The fields that show their own problems, by their path in the request. */
  fields?: readonly string[]
}

export interface Write {
  isBusy: boolean
  /** Why the last attempt failed, in words for people, without the problems that fields show. */
  problem: string | null
  /** The problems of the fields, by their path. */
  refused: Readonly<Record<string, string>>
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

const NO_FIELDS: readonly string[] = []

export function useWrite({ reads = [], isToldAside = false, fields = NO_FIELDS }: Options = {}): Write {
  const client = useQueryClient()
  const [isBusy, setIsBusy] = useState(false)
  const [error, setError] = useState<unknown>(null)
  const write: Write['write'] = async (work, says) => {
    const form = document.activeElement?.closest('form') ?? null
    setIsBusy(true)
    setError(null)
    try {
      const answer = await work()
      if (says !== undefined) tell(typeof says === 'string' ? says : says(answer))
      await Promise.all(reads.map((queryKey) => client.invalidateQueries({ queryKey })))
      return true
    } catch (failure) {
      setError(failure)
      if (Object.keys(refusalOf(failure, fields).fields).length > 0) focusOnRefused(form)
      if (isToldAside) tellProblem(failure)
      return false
    } finally {
      setIsBusy(false)
    }
  }
  const refusal = error === null ? null : refusalOf(error, fields)
  return { isBusy, problem: refusal?.rest ?? null, refused: refusal?.fields ?? {}, error, write }
}

/** Leads to the first field that needs a change: its problem is then read aloud with its label. */
function focusOnRefused(form: Element | null): void {
  const find = () => (form ?? document).querySelector<HTMLElement>('[aria-invalid="true"]')
  requestAnimationFrame(() => requestAnimationFrame(() => find()?.focus()))
}
