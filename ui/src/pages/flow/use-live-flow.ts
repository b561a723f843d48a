// A flow run as it is now: the row from the API, and its tasks from a snapshot and then from the stream of its journal.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useState } from 'react'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import { get } from '../../api/client.ts'
import type { FlowTrace } from '../../api/flow-trace.ts'
import { flowRunPath, flowRunQuery, isUnderWay } from '../../api/flows.ts'
import { follow } from '../../api/follow.ts'
import { readAgain } from '../../api/read-again.ts'
import { createFlowStore, type FlowStore, type FlowStoreOptions } from './flow-store.ts'

const TOTALS_EVERY_MS = 200

const browserPace: FlowStoreOptions = {
  nextFrame: (flush) => void requestAnimationFrame(flush),
  later: (flush) => void setTimeout(flush, TOTALS_EVERY_MS),
}

/** No event tells the runs and the tokens of tasks, so they are read again while events come. */
const SNAPSHOT_EVERY_MS = 15_000
const AGAIN_AFTER_MS = 500
const LONGEST_PAUSE_MS = 1_500

export interface LiveFlow {
  run: ReturnType<typeof useQuery<FlowRun>>
  store: FlowStore
  /** The stream is open, or the run has ended and needs none. */
  isLive: boolean
  /** The reason why the tasks could not be read, before any were. */
  problem: unknown
  /** The tasks were read at least once. */
  isRead: boolean
  readAgain: () => void
}

/** One flow run; a component that shows another one is made anew. */
export function useLiveFlow(projectId: string, flowRunId: string): LiveFlow {
  const client = useQueryClient()
  const [store] = useState(() => createFlowStore(browserPace))
  const run = useQuery(flowRunQuery(projectId, flowRunId))
  const isVisible = useVisible()
  const [state, setState] = useState(FRESH)
  const [wanted, setWanted] = useState(0)
  const isKnown = run.data !== undefined
  const isActive = run.data !== undefined && isUnderWay(run.data)
  // biome-ignore lint/correctness/useExhaustiveDependencies: `wanted` asks for everything once more
  useEffect(() => {
    if (!isKnown || !isVisible) return
    return followFlow({
      projectId,
      flowRunId,
      store,
      tell: (change) => setState((known) => ({ ...known, ...change })),
      onChange: () => readAgain(client, flowRunQuery(projectId, flowRunId).queryKey),
    })
  }, [client, projectId, flowRunId, store, isKnown, isActive, isVisible, wanted])
  useEffect(() => {
    if (!isActive) void client.invalidateQueries({ queryKey: ['flow_facts', projectId, flowRunId] })
  }, [client, projectId, flowRunId, isActive])
  return {
    run,
    store,
    problem: state.problem,
    isRead: state.isRead,
    isLive: !isActive || state.isOpen,
    readAgain: useCallback(() => setWanted((times) => times + 1), []),
  }
}

interface Reading {
  isRead: boolean
  isOpen: boolean
  problem: unknown
}

const FRESH: Reading = { isRead: false, isOpen: true, problem: null }

interface Followed {
  projectId: string
  flowRunId: string
  store: FlowStore
  tell: (change: Partial<Reading>) => void
  /** The row of the run differs. */
  onChange: () => void
}

/** Reads the tasks, then follows the journal from there. Returns the function that stops it. */
function followFlow({ projectId, flowRunId, store, tell, onChange }: Followed): () => void {
  const stop = new AbortController()
  const { signal } = stop
  let unfollow = (): void => {}
  let timer: ReturnType<typeof setTimeout> | undefined
  const path = flowRunPath(projectId, flowRunId)

  const readTasks = async (): Promise<void> => {
    const since = store.mark()
    const trace = await get<FlowTrace>(`${path}/trace`, { signal })
    if (!signal.aborted) store.load(trace, since)
  }
  /** Many reasons to read within this time cause one read. */
  const readLater = (ms: number): void => {
    timer ??= setTimeout(() => {
      timer = undefined
      // The stream says that it is cut; the next one reads again.
      readTasks().catch(() => {})
    }, ms)
  }
  const begin = async (): Promise<void> => {
    const run = await get<FlowRun>(path, { signal })
    await readTasks()
    if (signal.aborted) return
    tell({ isRead: true, isOpen: true, problem: null })
    if (isUnderWay(run)) followFrom(run.last_seq)
  }
  const beginAgain = async (): Promise<void> => {
    for (let pauseMs = AGAIN_AFTER_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
      try {
        onChange()
        return await begin()
      } catch {
        tell({ isOpen: false })
      }
    }
  }
  const followFrom = (lastSeq: number): void => {
    let wasCut = false
    unfollow = follow(`${path}/events`, {
      after: String(lastSeq),
      onOpen: (isOpen) => {
        tell({ isOpen })
        if (isOpen && wasCut) {
          readLater(0)
          onChange()
        }
        wasCut = !isOpen
      },
      onEvent: (event) => {
        store.apply(event)
        if (event.event.startsWith('task.')) readLater(SNAPSHOT_EVERY_MS)
        else onChange()
      },
      // A server that stops closes its streams too, so the run itself says whether it has ended.
      onEnd: () => void beginAgain(),
    })
  }
  begin().catch((problem: unknown) => {
    if (signal.aborted) return
    tell({ problem, isOpen: false })
    void beginAgain()
  })
  return () => {
    stop.abort()
    unfollow()
    clearTimeout(timer)
  }
}

/** A hidden page holds no stream: a browser has six connections per origin. */
function useVisible(): boolean {
  const [isVisible, setIsVisible] = useState(() => document.visibilityState === 'visible')
  useEffect(() => {
    const look = (): void => setIsVisible(document.visibilityState === 'visible')
    document.addEventListener('visibilitychange', look)
    return () => document.removeEventListener('visibilitychange', look)
  }, [])
  return isVisible
}
