// Guesses the name that somebody meant. The work is bounded: no long name or list can stall the process.

const LONGEST_NAME = 100
const MOST_CANDIDATES = 500

/** ` Did you mean "object_search"?`, or nothing if no name is near. Follows a finished sentence. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const near = nearest(name, candidates)
  return near === null ? '' : ` Did you mean "${near}"?`
}

/** The sentence without its full stop, and the guess if there is one. */
export const withGuess = (message: string, guess = ''): string => (guess === '' ? message : `${message}.${guess}`)

/**
 * The first name with the fewest letters added, left out, replaced or swapped; case, dashes and underscores do not
 * count. Null if more than one letter in three would have to change, or the name itself is a candidate.
 */
function nearest(name: string, candidates: Iterable<string>): string | null {
  if (name.length > LONGEST_NAME) return null
  const plain = plainOf(name)
  let most = Math.min(3, Math.floor(plain.length / 3))
  let best: string | null = null
  let looked = 0
  for (const candidate of candidates) {
    if (++looked > MOST_CANDIDATES) break
    if (candidate === name) return null
    if (candidate.length > LONGEST_NAME) continue
    const distance = distanceWithin(plain, plainOf(candidate), most)
    if (distance === null) continue
    best = candidate
    // Only a name that is nearer still replaces this one.
    most = distance - 1
    if (most < 0) break
  }
  return best
}

const plainOf = (name: string): string => name.toLowerCase().replaceAll(/[\s_-]/g, '')

/** The number of changes that turn one text into the other, or null if there are more than `most`. */
function distanceWithin(one: string, other: string, most: number): number | null {
  if (Math.abs(one.length - other.length) > most) return null
  let start = 0
  while (start < one.length && one[start] === other[start]) start++
  let [end, otherEnd] = [one.length, other.length]
  while (end > start && otherEnd > start && one[end - 1] === other[otherEnd - 1]) {
    end--
    otherEnd--
  }
  return changesWithin(one.slice(start, end), other.slice(start, otherEnd), most)
}

function changesWithin(one: string, other: string, most: number): number | null {
  const width = other.length + 1
  let beforeLast = new Uint16Array(width)
  let last = Uint16Array.from({ length: width }, (_, column) => column)
  let current = new Uint16Array(width)
  for (let row = 1; row <= one.length; row++) {
    current[0] = row
    let fewest = row
    for (let column = 1; column < width; column++) {
      const isSame = one[row - 1] === other[column - 1]
      let changes = Math.min(at(last, column - 1) + (isSame ? 0 : 1), at(last, column) + 1, at(current, column - 1) + 1)
      const isSwap = row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      if (isSwap) changes = Math.min(changes, at(beforeLast, column - 2) + 1)
      current[column] = changes
      if (changes < fewest) fewest = changes
    }
    if (fewest > most) return null
    ;[beforeLast, last, current] = [last, current, beforeLast]
  }
  const distance = at(last, other.length)
  return distance > most ? null : distance
}

const at = (row: Uint16Array, column: number): number => row[column] ?? 0
