// The cost of a run. A cost that is not known says why.
import { Tooltip, VisuallyHidden } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { Run } from '../../../src/kernel/run.ts'
import { meQuery } from '../api/queries.ts'
import { whyNoCost } from './cost-reason.ts'
import { cost } from './figures.ts'

interface Props {
  run: Pick<Run, 'project_id' | 'usage' | 'model'>
  /** True: an unknown cost leads the instance admin to the prices. In a table, whose rows lead elsewhere, it does not. */
  isLink?: boolean
}

export function Cost({ run, isLink = false }: Props) {
  const { cost_usd: usd, total_tokens: used } = run.usage
  if (usd !== null) return <span>{cost(usd)}</span>
  const why = whyNoCost(run)
  return (
    <Tooltip label={why} multiline maw={260} events={{ hover: true, focus: true, touch: true }}>
      <span>{isLink && used > 0 ? <ToPrices projectId={run.project_id} why={why} /> : <Dash why={why} />}</span>
    </Tooltip>
  )
}

function ToPrices({ projectId, why }: { projectId: string; why: string }) {
  const { data: me } = useQuery(meQuery)
  if (!me?.instance_admin) return <Dash why={why} />
  return (
    <Link to="/projects/$projectId/settings/$section" params={{ projectId, section: 'providers' }}>
      <Dash why={why} />
    </Link>
  )
}

function Dash({ why }: { why: string }) {
  return (
    <>
      <span aria-hidden>–</span>
      <VisuallyHidden>{why}</VisuallyHidden>
    </>
  )
}
