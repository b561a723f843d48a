import { Alert } from '@mantine/core'
import type { ReactNode } from 'react'

/** Why something was refused. Nothing if it was not. */
export function Problem({ text, children }: { text: string | null; children?: ReactNode }) {
  return text === null ? null : (
    <Alert color="red" role="alert">
      {text}
      {children}
    </Alert>
  )
}
