// An agent without tokens: how much it used, and Top up.
import { Button, Group, NumberInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { agentQuery } from '../../api/queries.ts'
import { useRole } from '../../app/role.ts'
import { BudgetBar } from '../../parts/budget-bar.tsx'
import { ConfirmButton } from '../../parts/confirm.tsx'
import { Prose } from '../../parts/prose.tsx'
import type { CardProps } from './inbox-card.tsx'

const MORE_TOKENS = 10_000

export function BudgetBody({ projectId, task, isOpen, mayDecide, decisions }: CardProps & { mayDecide: boolean }) {
  const role = useRole(projectId)
  const agentId = String(task.metadata.exhaustedAgentId)
  const { data: agent } = useQuery(agentQuery(projectId, agentId))
  const [add, setAdd] = useState<number | string>('')
  if (!isOpen) return null
  const isBusy = decisions.busy.has(task.id)
  const most = Math.max(agent?.token_allocation ?? 0, MORE_TOKENS)
  return (
    <>
      <Prose>{wordsFor(task.description)}</Prose>
      {agent && <BudgetBar used={agent.token_used} of={agent.token_allocation} />}
      {role !== 'admin' && <p className="dim">An admin of the project can give it tokens.</p>}
      {mayDecide && (
        <Group gap="xs" align="flex-end">
          {role === 'admin' && (
            <>
              <NumberInput
                label="Tokens"
                size="xs"
                w={130}
                min={1}
                step={1_000}
                thousandSeparator=" "
                placeholder={String(most)}
                value={add}
                onChange={setAdd}
              />
              <Button
                size="xs"
                loading={isBusy}
                onClick={() => void decisions.topUp(task, agentId, add === '' ? most : Number(add))}
              >
                Top up
              </Button>
            </>
          )}
          <ConfirmButton
            name="Give none"
            text="The agent stays paused, and its tasks wait."
            isBusy={isBusy}
            onSure={() => decisions.settle(task, { status: 'cancelled' }, `Closed: ${task.title}`)}
          />
        </Group>
      )}
    </>
  )
}

/** Without the paragraph that tells callers of the API what to send. */
const wordsFor = (description: string): string =>
  description
    .split('\n\n')
    .filter((paragraph) => !paragraph.includes('POST /api/'))
    .join('\n\n')
