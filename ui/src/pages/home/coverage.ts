// How many of a person's projects Home has read, in words. Home never presents a part as the whole.

/** Each project costs about a dozen requests. */
export const READ_AT_FIRST = 24
/** A press of the button has at most so many more read. */
const READ_MORE = 100

export interface Coverage {
  /** Projects whose reads have been answered. */
  read: number
  /** Projects that are to be read, the newest ones. */
  wanted: number
  /** Projects that are known. */
  all: number
  /** True if there are more projects than are known. */
  hasMore: boolean
}

/** True: there are projects that Home does not read. */
export const isPart = ({ wanted, all, hasMore }: Omit<Coverage, 'read'>): boolean => wanted < all || hasMore

/** The sentence at the figures. Null if they are of all projects. */
export function coverageLine(coverage: Coverage): string | null {
  const { read, wanted, hasMore } = coverage
  const all = `${coverage.all}${hasMore ? '+' : ''}`
  const isMuch = wanted > READ_AT_FIRST
  if (isMuch && read < wanted) {
    return `${read} of ${isPart(coverage) ? `the newest ${wanted} of ` : ''}your ${all} projects are read so far.`
  }
  return isPart(coverage) ? `Of the newest ${wanted} of your ${all} projects.` : null
}

/** What the button reads: `most` is how many projects are wanted then. Null if all that are known are wanted. */
export function nextReads({ wanted, all, hasMore }: Omit<Coverage, 'read'>): { label: string; most: number } | null {
  const left = all - wanted
  if (left <= 0) return null
  if (left <= READ_MORE && !hasMore) return { label: `Read all ${all}`, most: all }
  const more = Math.min(left, READ_MORE)
  return { label: `Read ${more} more`, most: wanted + more }
}
