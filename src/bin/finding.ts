export interface Finding {
  tone: 'well' | 'look' | 'mend'
  text: string
}

export const well = (text: string): Finding => ({ tone: 'well', text })
export const look = (text: string): Finding => ({ tone: 'look', text })
export const mend = (text: string): Finding => ({ tone: 'mend', text })
