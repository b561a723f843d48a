// The tour offers itself once, where the demo is.
import { Button, Group } from '@mantine/core'
import { Compass } from 'lucide-react'
import { useState } from 'react'
import type { Project } from '../../../src/kernel/project.ts'
import { isDemo } from '../api/tour.ts'
import { useMe } from './gate.tsx'
import { tour } from './openers.ts'
import classes from './tour.module.css'
import { knowsTour, noteTour } from './tour-memory.ts'

export function TourOffer({ projects }: { projects: readonly Project[] }) {
  const me = useMe()
  const hasStarted = tour.useCount() > 0
  const [isKnown, setIsKnown] = useState(() => knowsTour(me.id))
  if (isKnown || hasStarted || !projects.some(isDemo)) return null
  const decline = (): void => {
    noteTour(me.id)
    setIsKnown(true)
  }
  return (
    <section className={classes.offer} aria-label="First steps">
      <Compass size={18} color="var(--accent)" aria-hidden />
      <p>The project Demo is at work already, without any key. A tour of eight stops shows it, in two minutes.</p>
      <Group gap="xs">
        <Button size="xs" onClick={tour.open}>
          Show me around
        </Button>
        <Button size="xs" variant="default" onClick={decline}>
          Not now
        </Button>
      </Group>
    </section>
  )
}
