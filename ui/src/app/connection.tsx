// Says when the stream of changes is cut, and when it is open again.
import { Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { onLive } from '../api/live.ts'
import classes from './shell.module.css'

type State = 'fine' | 'lost' | 'back'

const TEXTS = {
  lost: 'The connection to Muster is lost. Work under way goes on; what is shown may be out of date.',
  back: 'The connection to Muster is back.',
}

/** A shorter cut is nothing to tell about. */
const PATIENCE_MS = 1_500
const SAID_FOR_MS = 4_000

export function Connection() {
  const state = useConnection()
  return (
    <div role="status" aria-label="Connection">
      {state !== 'fine' && (
        <Text size="sm" className={classes.connection ?? ''} data-state={state}>
          {TEXTS[state]}
        </Text>
      )}
    </div>
  )
}

function useConnection(): State {
  const [state, setState] = useState<State>('fine')
  useEffect(() => {
    let cut: ReturnType<typeof setTimeout> | undefined
    let said: ReturnType<typeof setTimeout> | undefined
    let isOpen = true
    let isTold = false
    const stop = onLive((now) => {
      if (now === isOpen) return
      isOpen = now
      clearTimeout(cut)
      if (!now) {
        cut = setTimeout(() => {
          clearTimeout(said)
          isTold = true
          setState('lost')
        }, PATIENCE_MS)
      } else if (isTold) {
        isTold = false
        setState('back')
        said = setTimeout(() => setState('fine'), SAID_FOR_MS)
      }
    })
    return () => {
      stop()
      clearTimeout(cut)
      clearTimeout(said)
    }
  }, [])
  return state
}
