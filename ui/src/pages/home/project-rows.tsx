import { Button, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { OctagonX } from 'lucide-react'
import { useState } from 'react'
import type { Project } from '../../../../src/kernel/project.ts'
import { useRole } from '../../app/role.ts'
import { cost, tokens } from '../../parts/figures.ts'
import { counted } from './gather.ts'
import { countOf } from './home-figures.tsx'
import classes from './home-page.module.css'
import type { ProjectNews } from './use-home.ts'

interface Props {
  projects: readonly Project[]
  /** The news of the first projects, in the same order. The others are not read. */
  news: readonly ProjectNews[]
}

const SHOWN_AT_FIRST = 8
const SHOWN_MORE = 50

/** Each project with its figures. One without agents offers the first action. */
export function ProjectRows({ projects, news }: Props) {
  const [most, setMost] = useState(SHOWN_AT_FIRST)
  const hidden = projects.length - most
  return (
    <section aria-label="Projects">
      <Title order={2}>Projects</Title>
      <ul className={classes.list}>
        {projects.slice(0, most).map((project, at) => (
          <li key={project.id} className={classes.project}>
            <Row project={project} news={news[at]} />
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

function Row({ project, news }: { project: Project; news: ProjectNews | undefined }) {
  return (
    <>
      <span className={classes.name}>
        <Link to="/projects/$projectId/runs" params={{ projectId: project.id }}>
          {project.name}
        </Link>{' '}
        {project.halted_at !== null && (
          <span className={classes.halted}>
            <OctagonX size={12} aria-hidden /> halted
          </span>
        )}
      </span>
      {news ? <Figures news={news} /> : <span className="dim">Its figures are not read.</span>}
    </>
  )
}

function Figures({ news }: { news: ProjectNews }) {
  const { project, usage, agentCount } = news
  const isAdmin = useRole(project.id) === 'admin'
  return (
    <>
      {agentCount === 0 ? (
        <>
          <span className="dim">Nothing here yet.</span>
          {isAdmin && (
            <Link to="/projects/$projectId/agents/new" params={{ projectId: project.id }}>
              New agent
            </Link>
          )}
        </>
      ) : (
        <span className="dim number">{figuresOf(news).join(' · ')}</span>
      )}
      {usage && usage.today.total_tokens + usage.yesterday.total_tokens > 0 && (
        <span className="dim number">
          {tokens(usage.today.total_tokens)} tokens, {cost(usage.today.cost_usd)} today · yesterday{' '}
          {tokens(usage.yesterday.total_tokens)}, {cost(usage.yesterday.cost_usd)}
        </span>
      )}
    </>
  )
}

function figuresOf(news: ProjectNews): string[] {
  const { agentCount, hasMoreAgents } = news
  return [
    agentCount === null ? '' : `${counted(agentCount, hasMoreAgents)} ${agentCount === 1 ? 'agent' : 'agents'}`,
    worded(countOf(news, 'waits'), 'waiting'),
    worded(countOf(news, 'runs'), 'running'),
    worded(countOf(news, 'fails'), 'failed'),
  ].filter((text) => text !== '')
}

const worded = (count: string | null, word: string): string => (count === null ? '' : `${count} ${word}`)
