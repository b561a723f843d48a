// vite asks for the stylesheet of a lazy part once. A stylesheet that could not be loaded is asked for again here, until
// it is there: otherwise the part would come back by its Retry without its styles.
const SOON_MS = 1_000
const LATEST_MS = 30_000

/** Called once, when the console starts. */
export function mendStyles(): void {
  window.addEventListener('vite:preloadError', ({ payload }) => {
    const href = /^Unable to preload CSS for (\S+)$/.exec(payload.message)?.[1]
    if (href !== undefined) ask(href, SOON_MS)
  })
}

function ask(href: string, afterMs: number): void {
  setTimeout(() => {
    const link = document.createElement('link')
    link.rel = 'stylesheet'
    link.href = href
    link.onerror = () => {
      link.remove()
      ask(href, Math.min(2 * afterMs, LATEST_MS))
    }
    document.head.append(link)
  }, afterMs)
}
