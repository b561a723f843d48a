import { useEffect } from 'react'

/** The focus goes here if the element that had it is gone or hidden. */
const INSTEAD = ['#tour-button', '#menu-button', '#main']

/** Gives the focus back when the part ends, if the focus is still within it or nowhere. */
export function useFocusBack(): void {
  useEffect(() => {
    const before = document.activeElement
    return () => {
      // The part is not in the page any more, so a focus within it is at the body now.
      if (document.activeElement !== document.body) return
      const places = [before, ...INSTEAD.map((place) => document.querySelector(place))]
      const place = places.find(
        (each) => each instanceof HTMLElement && each !== document.body && each.checkVisibility(),
      )
      if (place instanceof HTMLElement) place.focus()
    }
  }, [])
}
