import { Button, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { OctagonX } from 'lucide-react'
import { useState } from 'react'
import type { AmountsOfHome, Home, HomeProject } from '../../../../src/kernel/home.ts'
import type { Project } from '../../../../src/kernel/project.ts'
import { useRole } from '../../app/role.ts'
import { cost, tokens } from '../../parts/figures.ts'
import { worded } from './home-figures.tsx'
import classes from './home-page.module.css'

interface Props {
  projects: readonly Project[]
  home: Home | undefined
}

const SHOWN_AT_FIRST = 8
const SHOWN_MORE = 50

/** Each project with its figures. One without agents offers the first action. */
export function ProjectRows({ projects, home }: Props) {
  const [most, setMost] = useState(SHOWN_AT_FIRST)
  const hidden = projects.length - most
  const figuresOf = new Map(home?.projects.items.map((each) => [each.project_id, each]))
  return (
    <section aria-label="Projects">
      <Title order={2}>Projects</Title>
      <ul className={classes.list}>
        {projects.slice(0, most).map((project) => (
          <li key={project.id} className={classes.project}>
            <Row project={project} figures={figuresOf.get(project.id)} isPart={home?.projects.has_more === true} />
          </li>
        ))}
      </ul>
      {hidden > 0 && (
        <Button size="compact-sm" variant="subtle" mt={4} onClick={() => setMost(most + SHOWN_MORE)}>
          {hidden > SHOWN_MORE ? `${SHOWN_MORE} of ${hidden} more` : `${hidden} more`}
        </Button>
      )}
    </section>
  )
}

interface RowProps {
  project: Project
  figures: HomeProject | undefined
  /** True: there are projects without figures. */
  isPart: boolean
}

function Row({ project, figures, isPart }: RowProps) {
  const { halted_at: haltedAt } = figures ?? project
  return (
    <>
      <span className={classes.name}>
        <Link to="/projects/$projectId/runs" params={{ projectId: project.id }}>
          {project.name}
        </Link>{' '}
        {haltedAt !== null && (
          <span className={classes.halted}>
            <OctagonX size={12} aria-hidden /> halted
          </span>
        )}
      </span>
      {figures && <Figures figures={figures} />}
      {!figures && isPart && <span className="dim">Its figures are not read.</span>}
    </>
  )
}

function Figures({ figures }: { figures: HomeProject }) {
  const { project_id: projectId, agents, waits, runs, fails, usage } = figures
  const isAdmin = useRole(projectId) === 'admin'
  const texts = [
    worded(agents, agents?.count === 1 ? 'agent' : 'agents'),
    worded(waits, 'waiting'),
    worded(runs, 'running'),
    worded(fails, 'failed'),
  ]
  return (
    <>
      {agents?.count === 0 ? (
        <>
          <span className="dim">Nothing here yet.</span>
          {isAdmin && (
            <Link to="/projects/$projectId/agents/new" params={{ projectId }}>
              New agent
            </Link>
          )}
        </>
      ) : (
        <span className="dim number">{texts.filter((text) => text !== '').join(' · ')}</span>
      )}
      {usage && usage.today.total_tokens + usage.yesterday.total_tokens > 0 && (
        <span className="dim number">
          {amountsOf(usage.today, ' tokens')} today · yesterday {amountsOf(usage.yesterday)}
        </span>
      )}
    </>
  )
}

/** "26.5k tokens, $0.12"; without the cost if it is not known. */
const amountsOf = ({ total_tokens: all, cost_usd: price }: AmountsOfHome, unit = ''): string =>
  [`${tokens(all)}${unit}`, ...(price === null ? [] : [cost(price)])].join(', ')
