// j and k move, a approves, r rejects, x selects; never while somebody types.
import { useEffect, useRef } from 'react'

export type InboxKey = 'j' | 'k' | 'a' | 'r' | 'x'
const KEYS: readonly string[] = ['j', 'k', 'a', 'r', 'x'] satisfies InboxKey[]

const TYPING = 'input:not([type="checkbox"]), textarea, select, [contenteditable="true"], [role="dialog"]'

export function useInboxKeys(onKey: (key: InboxKey) => void): void {
  const latest = useRef(onKey)
  useEffect(() => {
    latest.current = onKey
  })
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (!KEYS.includes(event.key) || (event.target as Element | null)?.closest?.(TYPING)) return // a key's target is an element
      // The card of the tour is a dialog, too, but it leaves the page in use.
      if (document.querySelector('[aria-modal="true"]')) return
      event.preventDefault()
      latest.current(event.key as InboxKey) // one of KEYS
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
}
