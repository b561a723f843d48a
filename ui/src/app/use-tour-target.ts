import { useEffect } from 'react'

const CALM = '(prefers-reduced-motion: reduce)'

/** Outlines the place, and brings it into view as soon as it is on the page. */
export function useTourTarget(selector: string | null): void {
  useEffect(() => {
    if (selector === null) return
    const sheet = document.createElement('style')
    // A rule holds for a place that is made again, too. The margin keeps the place clear of the card.
    sheet.textContent = `${selector} { outline: 2px solid var(--accent); outline-offset: 4px; border-radius: 4px;
      scroll-margin: 64px 0 280px }`
    document.head.append(sheet)
    const show = (): boolean => {
      const place = document.querySelector(selector)
      place?.scrollIntoView({ block: 'nearest', behavior: matchMedia(CALM).matches ? 'auto' : 'smooth' })
      return place !== null
    }
    const observer = new MutationObserver(() => show() && observer.disconnect())
    if (!show()) observer.observe(document.body, { childList: true, subtree: true })
    return () => {
      observer.disconnect()
      sheet.remove()
    }
  }, [selector])
}
