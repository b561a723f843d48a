type Instant = `${string}_at` | `${string}_until`

/** The row of a thing as the database gives it: its instants, which people read as text, are dates. */
export type RowOf<Thing> = {
  [Field in keyof Thing]: Field extends Instant ? Date | Extract<Thing[Field], null> : Thing[Field]
}

type Told<Row> = {
  [Field in keyof Row]: Field extends Instant ? string | Extract<Row[Field], null> : Row[Field]
}

/** The row with its instants as people read them. */
export function tellInstants<Row extends object>(row: Row): Told<Row> {
  const fields = Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value])
  return Object.fromEntries(fields) as Told<Row> // each field was told as its type says
}
