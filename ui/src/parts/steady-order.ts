import { useRef, useState } from 'react'

/** While somebody points at a list, its rows stay where they are and new ones come last. */
export function steadyOrder(shown: readonly string[], wanted: readonly string[]): readonly string[] {
  const known = new Set(shown)
  const added = wanted.filter((id) => !known.has(id))
  return added.length === 0 ? shown : [...shown, ...added]
}

/** The rows to show, and the handlers of the element that holds them. */
export function useSteadyOrder(wanted: readonly string[]) {
  const [isHeld, setIsHeld] = useState(false)
  const shown = useRef(wanted)
  shown.current = isHeld ? steadyOrder(shown.current, wanted) : wanted
  return {
    order: shown.current,
    hold: { onPointerEnter: () => setIsHeld(true), onPointerLeave: () => setIsHeld(false) },
  }
}
