import { Group } from '@mantine/core'
import { type ReactNode, useEffect } from 'react'

/** The title of a page at the left, its actions at the right. */
export function PageHead({ title, name, children }: { title: ReactNode; name?: string; children?: ReactNode }) {
  useEffect(() => {
    if (name !== undefined) document.title = `${name} · Muster`
  }, [name])
  return (
    <Group justify="space-between" px="lg" py="md" gap="md" style={{ overflowWrap: 'anywhere' }}>
      {title}
      {children}
    </Group>
  )
}
