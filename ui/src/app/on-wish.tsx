// A part of the frame whose code is loaded when somebody first wants it.
import { notifications } from '@mantine/notifications'
import { type ComponentType, useEffect, useState } from 'react'
import { Panel } from '../parts/panel.tsx'
import type { Wishes } from './wishes.ts'

interface Props {
  name: string
  of: Wishes
  load: () => Promise<ComponentType>
}

/** Each wish shows the part anew, and tries to load its code until it is there. */
export function OnWish({ name, of: { useCount }, load }: Props) {
  const wishes = useCount()
  const [Part, setPart] = useState<ComponentType | null>(null)
  useEffect(() => {
    if (wishes === 0) return
    load().then(
      (part) => setPart(() => part),
      () => notifications.show({ color: 'red', message: `${name} could not be loaded. Try again.` }),
    )
  }, [wishes, name, load])
  if (!Part) return null
  return (
    <Panel name={name} key={wishes}>
      <Part />
    </Panel>
  )
}
