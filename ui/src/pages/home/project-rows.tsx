import { Button, Title } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { OctagonX } from 'lucide-react'
import { useRole } from '../../app/role.ts'
import { cost, tokens } from '../../parts/figures.ts'
import { fails, runs, waits } from './home-figures.tsx'
import classes from './home-page.module.css'
import type { ProjectNews } from './use-home.ts'

interface Props {
  news: ProjectNews[]
  /** How many projects are not shown yet. */
  hidden: number
  onMore: () => void
}

/** Each project with its figures. One without agents offers the first action. */
export function ProjectRows({ news, hidden, onMore }: Props) {
  return (
    <section aria-label="Projects">
      <Title order={2}>Projects</Title>
      <ul className={classes.list}>
        {news.map((each) => (
          <li key={each.project.id} className={classes.project}>
            <Row news={each} />
          </li>
        ))}
      </ul>
      {hidden > 0 && (
        <Button size="compact-sm" variant="subtle" mt={4} onClick={onMore}>
          {hidden} more
        </Button>
      )}
    </section>
  )
}

function Row({ news }: { news: ProjectNews }) {
  const { project, usage, agentCount } = news
  const isAdmin = useRole(project.id) === 'admin'
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
    agentCount === null ? '' : `${agentCount}${hasMoreAgents ? '+' : ''} ${agentCount === 1 ? 'agent' : 'agents'}`,
    waits(news) > 0 ? `${waits(news)} waiting` : '',
    runs(news) > 0 ? `${runs(news)} running` : '',
    fails(news) > 0 ? `${fails(news)} failed` : '',
  ].filter((text) => text !== '')
}
