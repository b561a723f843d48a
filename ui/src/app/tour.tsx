// A short tour that says what is seen.
import { LoadedOnOpen } from './loaded-on-open.tsx'
import { tour } from './openers.ts'

const load = async () => (await import('./tour-card.tsx')).TourCard

export function Tour() {
  return <LoadedOnOpen name="The tour" of={tour} load={load} />
}
