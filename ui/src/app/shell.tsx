// The frame around every page: who is here, the rail, and the place of the page.
import { Outlet, useMatches } from '@tanstack/react-router'
import { useEffect } from 'react'
import { followChanges } from '../api/live.ts'
import { Panel } from '../parts/panel.tsx'
import { Connection } from './connection.tsx'
import { Gate } from './gate.tsx'
import { Halt } from './halt.tsx'
import { Jump } from './jump.tsx'
import { Rail } from './rail.tsx'
import classes from './shell.module.css'
import { Tour } from './tour.tsx'

export function Shell() {
  const isDoor = useMatches({ select: (matches) => matches.some(({ staticData }) => staticData.isDoor) })
  if (isDoor) return <Outlet />
  return (
    <Gate>
      <Live />
      <a className="skip-link" href="#main">
        Skip to the page
      </a>
      <div className={classes.frame}>
        <Rail />
        <main id="main" tabIndex={-1} className={classes.main}>
          <Connection />
          <Halt />
          <Panel name="This page">
            <Outlet />
          </Panel>
        </main>
      </div>
      <Jump />
      <Tour />
    </Gate>
  )
}

/** Keeps the lists up to date while somebody is signed in. */
function Live() {
  useEffect(followChanges, [])
  return null
}
