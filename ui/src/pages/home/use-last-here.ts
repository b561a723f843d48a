import { useEffect, useState } from 'react'
import { serverNow } from '../../api/client.ts'
import { noteVisit, readVisits, type Visits } from './last-here.ts'

const EVERY_MS = 60_000

/** The visit that this page belongs to. Its `since` does not move while the page is open. */
export function useLastHere(personId: string | null): Visits {
  const key = `muster-here-${personId ?? 'admin'}`
  const [visit] = useState<Visits>(() => touch(key))
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && touch(key), EVERY_MS)
    return () => clearInterval(timer)
  }, [key])
  return visit
}

/** Storage may be full or forbidden; then every visit is the first. */
function touch(key: string): Visits {
  try {
    const visits = noteVisit(readVisits(localStorage.getItem(key)), serverNow())
    localStorage.setItem(key, JSON.stringify(visits))
    return visits
  } catch {
    return noteVisit(null, serverNow())
  }
}
