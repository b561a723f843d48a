import { shortId } from './short-id.ts'

/** A name as a shell takes it. A name of other letters could do something when it is pasted, so its id stands. */
export function wordFor({ id, name }: { id: string; name: string }): string {
  if (/^\w[\w.-]*$/.test(name)) return name
  return /^\w[\w .-]*$/.test(name) ? `"${name}"` : shortId(id)
}
