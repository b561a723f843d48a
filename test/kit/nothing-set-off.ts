import type { SetsOff } from '../../src/objects/write-statements.ts'

/** Objects are written, and nobody reacts. */
export const nothingSetOff: SetsOff = { parts: '', started: '0' }
