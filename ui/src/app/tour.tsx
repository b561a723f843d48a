// A short tour that says what is seen.
import { OnWish } from './on-wish.tsx'
import { tour } from './wishes.ts'

const load = async () => (await import('./tour-card.tsx')).TourCard

export function Tour() {
  return <OnWish name="The tour" of={tour} load={load} />
}
