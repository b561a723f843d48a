// A text of people or models as it was written; long ones are cut until somebody wants to read on.
import { Button } from '@mantine/core'
import { useState } from 'react'
import { showMarks } from './property-diff.ts'

const LONG = 1_200

export function Prose({ children }: { children: string }) {
  const [isWhole, setIsWhole] = useState(false)
  const isCut = children.length > LONG && !isWhole
  return (
    <div style={{ whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' }}>
      {showMarks(isCut ? `${children.slice(0, LONG)}… ` : children)}
      {isCut && (
        <Button size="compact-xs" variant="default" onClick={() => setIsWhole(true)}>
          Show all
        </Button>
      )}
    </div>
  )
}
