// Lists as values of prepared statements. PostgreSQL knows the length of a list parameter and finds a plan for this
// short list cheaper than a generic plan, so it would plan the statement anew at each call, which takes longer than the
// execution. Behind a `select` all lists look alike to the planner.

/** The list at this place of the values. */
export const listAt = (place: number, type = 'uuid'): string => `(select $${place}::${type}[])`

/** For `= any (…)`. */
export const anyOf = (place: number, type = 'uuid'): string => `any (${listAt(place, type)}::${type}[])`

/** Rows as lists, one for each column. There must be rows. */
export function columnsOf<Row>(rows: readonly Row[], valuesOf: (row: Row) => readonly unknown[]): unknown[][] {
  const values = rows.map(valuesOf)
  return (values[0] ?? []).map((_, column) => values.map((each) => each[column]))
}

/** The lists as the columns of a table, from the first place on. */
export const rowsOf = (types: readonly string[]): string =>
  `unnest(${types.map((type, index) => listAt(index + 1, type)).join(', ')})`
