// Lists as values of prepared statements. PostgreSQL sees how long a list is and finds a plan made for one short list
// cheaper than a plan for any: it would plan the statement anew each time, which takes longer than carrying it out. A list
// behind a `select` is like any other.

/** The list at this place of the values. */
export const listAt = (place: number, type = 'uuid'): string => `(select $${place}::${type}[])`

/** For `= any (…)`. */
export const anyOf = (place: number, type = 'uuid'): string => `any (${listAt(place, type)}::${type}[])`

/** The lists as the columns of a table, from the first place on. */
export const rowsOf = (types: readonly string[]): string =>
  `unnest(${types.map((type, index) => listAt(index + 1, type)).join(', ')})`
