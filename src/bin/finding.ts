/** One thing that doctor looked at. */
export interface Finding {
  tone: 'well' | 'look' | 'mend'
  /** What was found; where it is not well, also what to do about it. */
  text: string
}

export const well = (text: string): Finding => ({ tone: 'well', text })
export const look = (text: string): Finding => ({ tone: 'look', text })
export const mend = (text: string): Finding => ({ tone: 'mend', text })
