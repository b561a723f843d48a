// The card of the tour. It stands beside the page, which stays in use, and leads from stop to stop.
import { ActionIcon, Button, Group, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useLocation, useParams, useRouter } from '@tanstack/react-router'
import { ArrowLeft, ArrowRight, X } from 'lucide-react'
import { type KeyboardEvent, useEffect, useRef, useState } from 'react'
import { inboxKindOf, waitingQuery } from '../api/inbox.ts'
import { newestAgentsQuery, newestRunsQuery, projectsQuery } from '../api/queries.ts'
import { isDemo, newestFlowsQuery } from '../api/tour.ts'
import { useMe } from './gate.tsx'
import { useRole } from './role.ts'
import classes from './tour.module.css'
import { noteTour } from './tour-memory.ts'
import { findThings, type Stop, stopsOf } from './tour-stops.ts'
import { useFocusBack } from './use-focus-back.ts'
import { useTourTarget } from './use-tour-target.ts'

export function TourCard() {
  const me = useMe()
  const [isOpen, setIsOpen] = useState(true)
  useEffect(() => noteTour(me.id), [me.id])
  return isOpen && <OpenCard onClose={() => setIsOpen(false)} />
}

function OpenCard({ onClose }: { onClose: () => void }) {
  const { projectId, stops, isRead } = useStops()
  const [at, setAt] = useState(0)
  const [isOnItsWay, setIsOnItsWay] = useState(false)
  const router = useRouter()
  const next = useRef<HTMLButtonElement>(null)
  const stop = stops[Math.min(at, stops.length - 1)]
  useFocusBack()
  useEffect(() => {
    next.current?.focus()
    void router.navigate({ to: '/' })
  }, [router])
  useEscape(onClose)
  useTourTarget(stop?.target ?? null)
  useEffect(() => {
    // Before the things of the demo are read, the address of a stop is that of its area.
    if (!isOnItsWay || !isRead || !stop) return
    setIsOnItsWay(false)
    void router.navigate({ href: stop.address })
  }, [isOnItsWay, isRead, stop, router])
  const go = (to: number): void => {
    if (!stops[to]) return
    setAt(to)
    setIsOnItsWay(true)
    if (to === 0) next.current?.focus() // the button Back goes away
  }
  const isLast = at >= stops.length - 1
  const goOn = (): void => (isLast ? onClose() : go(at + 1))
  const byArrows = ({ key }: KeyboardEvent): void => {
    if (key === 'ArrowRight' && !isLast) go(at + 1)
    if (key === 'ArrowLeft') go(at - 1)
  }
  if (!stop) return null
  return (
    <div
      role="dialog"
      aria-label="Tour"
      className={classes.card}
      data-at={stop.isLow ? 'top' : 'bottom'}
      onKeyDown={byArrows}
    >
      <div className={classes.top}>
        <span className="dim number">
          {at + 1} of {stops.length}
        </span>
        <ActionIcon size="sm" variant="subtle" color="gray" aria-label="Close" onClick={onClose}>
          <X size={14} aria-hidden />
        </ActionIcon>
      </div>
      <div aria-live="polite">
        <Title order={2}>{stop.title}</Title>
        <p className={classes.text}>{stop.text}</p>
      </div>
      <Links projectId={projectId} stop={stop} />
      <Group justify="flex-end" gap="xs">
        {at > 0 && (
          <Button
            size="xs"
            variant="default"
            leftSection={<ArrowLeft size={13} aria-hidden />}
            onClick={() => go(at - 1)}
          >
            Back
          </Button>
        )}
        <Button ref={next} size="xs" rightSection={isLast ? null : <ArrowRight size={13} aria-hidden />} onClick={goOn}>
          {isLast ? 'Done' : 'Next'}
        </Button>
      </Group>
    </div>
  )
}

/** The way to the stop, for people who went elsewhere meanwhile, and the choices of the stop. */
function Links({ projectId, stop }: { projectId: string | null; stop: Stop }) {
  const { pathname } = useLocation()
  const isAdmin = useRole(projectId ?? '') === 'admin'
  const isElsewhere = pathname !== stop.address.split('?')[0]
  const links = [
    ...(isElsewhere ? [{ label: 'Show it', address: stop.address }] : []),
    ...stop.links.filter(({ isForAdmins }) => isAdmin || !isForAdmins),
  ]
  if (links.length === 0) return null
  return (
    <Group gap="md">
      {links.map(({ label, address }) => (
        <Link key={label} to={address}>
          {label}
        </Link>
      ))}
    </Group>
  )
}

/** Of the project of the address, or the demo, or the first one. */
function useStops(): { projectId: string | null; stops: Stop[]; isRead: boolean } {
  const [inAddress] = useState(useParams({ strict: false }).projectId)
  const projects = useQuery(projectsQuery).data?.items ?? []
  const chosen = projects.find(({ id }) => id === inAddress) ?? projects.find(isDemo) ?? projects[0]
  const projectId = chosen?.id ?? null
  const enabled = chosen !== undefined && isDemo(chosen)
  const flows = useQuery({ ...newestFlowsQuery(projectId ?? ''), enabled })
  const failed = useQuery({ ...newestRunsQuery(projectId ?? '', { status: 'failed' }), enabled })
  const agents = useQuery({ ...newestAgentsQuery(projectId ?? ''), enabled })
  const waiting = useQuery({ ...waitingQuery(projectId ?? ''), enabled })
  const things = findThings({
    flows: flows.data?.items ?? [],
    failed: failed.data?.items ?? [],
    agents: agents.data?.items ?? [],
    waiting: (waiting.data?.items ?? []).map((task) => ({ id: task.id, kind: inboxKindOf(task) })),
  })
  const isRead = !enabled || [flows, failed, agents, waiting].every(({ isPending }) => !isPending)
  return { projectId, stops: stopsOf(projectId, enabled ? things : null), isRead }
}

/** Esc closes the tour, unless it is meant for something else: a dialog, a list, a field. */
function useEscape(onClose: () => void): void {
  useEffect(() => {
    const close = (event: globalThis.KeyboardEvent): void => {
      if (event.key !== 'Escape' || event.defaultPrevented) return
      // A dialog may be gone already, so the target is asked and not the page.
      const isForOther = event.target instanceof Element && event.target.closest(OTHERS) !== null
      if (!isForOther) onClose()
    }
    document.addEventListener('keydown', close)
    return () => document.removeEventListener('keydown', close)
  })
}

const OTHERS = '[aria-modal="true"], input, textarea, select, [contenteditable], [role="menu"], [role="listbox"]'
