/** A copy of plain JSON that shares no object with the original. Texts are shared: they cannot change. */
export function copyJson<Value>(value: Value): Value {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(copyJson) as Value // a list of copied items has the list's type
  const fields = Object.entries(value).map(([name, field]) => [name, copyJson(field)])
  return Object.fromEntries(fields) as Value // an object of copied fields has the object's type
}
