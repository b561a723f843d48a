// Whether a person knows of the tour: it offers itself once.

const keyOf = (personId: string | null): string => `muster-tour-${personId ?? 'admin'}`

/** Storage may be forbidden; then nobody is asked. */
export function knowsTour(personId: string | null): boolean {
  try {
    return localStorage.getItem(keyOf(personId)) !== null
  } catch {
    return true
  }
}

export function noteTour(personId: string | null): void {
  try {
    localStorage.setItem(keyOf(personId), 'known')
  } catch {
    // The storage is full or forbidden: the tour may offer itself again.
  }
}
