import { cutText } from '../../../src/kernel/cut-text.ts'
import type { Found } from '../api/search.ts'

/** Every word of the text begins a word of the entry. */
export function matches(text: string, entry: string): boolean {
  const words = entry.toLowerCase().split(/\s+/)
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((sought) => sought === '' || words.some((word) => word.startsWith(sought)))
}

/** The page of a thing that the search found. */
export function addressOf({ kind, id, projectId }: Pick<Found, 'kind' | 'id' | 'projectId'>): string {
  const below = `/projects/${projectId}`
  switch (kind) {
    case 'agent':
      return `${below}/agents/${id}`
    case 'run':
      return `${below}/runs/${id}`
    case 'flow':
      return `${below}/flows/definitions/${id}`
    case 'flow_run':
      return `${below}/flows/${id}`
    case 'object':
      return `${below}/objects/${id}`
    case 'task':
      return `${below}/inbox?item=${id}`
  }
}

/** Cuts a text behind a word, if there is one in its second half, and marks the cut. */
export function cutAtWord(text: string, most: number): string {
  if (text.length <= most) return text
  const space = text.slice(0, most).lastIndexOf(' ')
  return space > most / 2 ? `${text.slice(0, space).replace(/[\s·,;:]+$/, '')} …` : cutText(text, most, '…')
}
