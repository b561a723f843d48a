// The column `changed_in` of the rows that lists show: the transaction that last changed what a list shows of the row. The
// feed of changes (api/feed) reads it. New rows have it by default, and tasks and agents by a trigger; every other statement
// sets it with the SQL here. A change of a run's or a flow run's status that was not marked is marked by a trigger.

/** SQL for the `set` of a statement that always changes what lists show. */
export const MARK_CHANGED = 'changed_in = pg_current_xact_id()'

/** SQL for the `set` of a statement that changes what lists show of the row `row` if `condition` is true. */
export const markChangedIf = (condition: string, row: string): string =>
  `changed_in = case when ${condition} then pg_current_xact_id() else ${row}.changed_in end`
