// A part of the frame whose code is loaded when it is first opened.
import { notifications } from '@mantine/notifications'
import { type ComponentType, useEffect, useState } from 'react'
import { Panel } from '../parts/panel.tsx'
import type { Opener } from './openers.ts'

interface Props {
  name: string
  of: Opener
  load: () => Promise<ComponentType>
}

/** Each opening shows the part anew. */
export function LoadedOnOpen({ name, of: { useCount }, load }: Props) {
  const openings = useCount()
  const [Part, setPart] = useState<ComponentType | null>(null)
  useEffect(() => {
    if (openings === 0) return
    load().then(
      (part) => setPart(() => part),
      () =>
        notifications.show({
          color: 'red',
          message: `${name} could not be loaded. Load the page anew, and try again.`,
        }),
    )
  }, [openings, name, load])
  if (!Part) return null
  return (
    <Panel name={name} key={openings}>
      <Part />
    </Panel>
  )
}
