// A run as it is now: the row and its steps from the API, and the text of the step under way from its stream.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { follow } from '../../api/follow.ts'
import { projectPath, runQuery, stepsQuery, waitsQuery } from '../../api/queries.ts'
import { readAgain } from '../../api/read-again.ts'
import { type FailedTry, type LiveStep, nextFailure, nextText } from './live-text.ts'

/** Kinds of events after which the row or its steps differ. */
const CHANGES = /^(run\.|step\.completed|tool\.|flow\.)/
/** Many events in a row cause one read. */
const READ_EVERY_MS = 300

export function useLiveRun(projectId: string, runId: string) {
  const client = useQueryClient()
  const run = useQuery(runQuery(projectId, runId))
  const steps = useQuery(stepsQuery(projectId, runId))
  const waits = useQuery(waitsQuery(projectId, runId))
  const [live, setLive] = useState<LiveStep | null>(null)
  const [failedTry, setFailedTry] = useState<FailedTry | null>(null)
  const [isOpen, setIsOpen] = useState(true)
  const mayChange = run.data?.completed_at === null
  useEffect(() => {
    if (!mayChange) return
    let timer: ReturnType<typeof setTimeout> | undefined
    let pending: LiveStep | null = null
    let frame = 0
    const readSoon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined
        readAgain(client, runQuery(projectId, runId).queryKey)
      }, READ_EVERY_MS)
    }
    // Many tokens in one frame are shown at once.
    const show = (next: LiveStep | null): void => {
      pending = next
      frame ||= requestAnimationFrame(() => {
        frame = 0
        setLive(pending)
      })
    }
    const stop = follow(projectPath(projectId, `/runs/${runId}/events`), {
      after: null,
      // A server that stops closes its streams too, so the run itself says whether it has ended.
      hasEnded: async () =>
        (await client.fetchQuery({ ...runQuery(projectId, runId), staleTime: 0 })).completed_at !== null,
      onOpen: (open) => {
        setIsOpen(open)
        if (open) readSoon()
      },
      onEvent: (event) => {
        if (event.event === 'token' || event.event === 'step.restarted') show(nextText(pending, event, runId))
        setFailedTry((known) => nextFailure(known, event, runId))
        if (CHANGES.test(event.event)) readSoon()
      },
      onEnd: readSoon,
    })
    return () => {
      stop()
      clearTimeout(timer)
      cancelAnimationFrame(frame)
      setLive(null)
      setFailedTry(null)
    }
  }, [client, projectId, runId, mayChange])
  return {
    run,
    steps,
    waits,
    /** The text stays until the stored step takes its place. */
    live,
    failedTry,
    /** The stream is open, or the run has ended and needs none. */
    isLive: !mayChange || isOpen,
  }
}
