// The tokens that the agent has used, and those that it may use.

import { Button, Group, NumberInput, Progress, Stack, Text, Title } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { Agent } from '../../../../src/kernel/agent.ts'
import { agentPath } from '../../api/agents.ts'
import { patch, post } from '../../api/client.ts'
import { useRole } from '../../app/role.ts'
import { tokens } from '../../parts/figures.ts'
import { Problem } from '../../parts/problem.tsx'
import { typedNumber } from '../../parts/typed-number.ts'
import { useWrite } from '../../parts/use-write.ts'
import { budgetTone } from './budget-tone.ts'

const MORE_TOKENS = 10_000

export function AgentBudget({ agent }: { agent: Agent }) {
  const { token_used: used, token_allocation: allocation } = agent
  const isAdmin = useRole(agent.project_id) === 'admin'
  const { share, tone, word } = budgetTone(used, allocation)
  return (
    <Stack maw={520}>
      <section aria-label="Budget">
        <Title order={2} mb="xs">
          Budget
        </Title>
        <Text className="number">
          {allocation === null
            ? `${tokens(used)} tokens used, without a limit`
            : `${tokens(used)} of ${tokens(allocation)} tokens used (${Math.floor(share)} %)`}
        </Text>
        {allocation !== null && (
          <>
            <Progress
              mt="xs"
              value={Math.min(100, share)}
              color={`var(--${tone})`}
              aria-label="Budget used"
              data-tone={tone}
            />
            {word !== '' && (
              <Text size="sm" mt="xs" style={{ color: `var(--${tone})` }}>
                {word}
              </Text>
            )}
          </>
        )}
      </section>
      {isAdmin && agent.source !== 'app' && allocation === null && <SetLimit agent={agent} />}
      {isAdmin && allocation !== null && <TopUpForm agent={agent} />}
    </Stack>
  )
}

function TopUpForm({ agent }: { agent: Agent }) {
  const { project_id: projectId, id, name } = agent
  const [add, setAdd] = useState<number | string>(MORE_TOKENS)
  const { write, isBusy, problem, refused } = useWrite({ reads: [['agent', projectId]], fields: ['add'] })
  const topUp = (event: FormEvent): void => {
    event.preventDefault()
    void write(
      () => post(agentPath(projectId, id, '/budget'), { add: typedNumber(add) }),
      `${name} has ${tokens(Number(add))} tokens more. Interrupted work goes on.`,
    )
  }
  return (
    <form onSubmit={topUp}>
      <Problem text={problem} />
      <Group align="flex-end" gap="xs">
        <Tokens label="Tokens" value={add} error={refused.add} onChange={setAdd} />
        <Button size="xs" type="submit" loading={isBusy} disabled={add === '' || Number(add) < 1}>
          Top up
        </Button>
      </Group>
    </form>
  )
}

function SetLimit({ agent }: { agent: Agent }) {
  const { project_id: projectId, id, name } = agent
  const [most, setMost] = useState<number | string>('')
  const { write, isBusy, problem, refused } = useWrite({ reads: [['agent', projectId]], fields: ['token_allocation'] })
  const set = (event: FormEvent): void => {
    event.preventDefault()
    void write(
      () => patch(agentPath(projectId, id), { token_allocation: typedNumber(most) }),
      `${name} may use ${tokens(Number(most))} tokens in all.`,
    )
  }
  return (
    <form onSubmit={set}>
      <Problem text={problem} />
      <Group align="flex-end" gap="xs">
        <Tokens label="Tokens in all" value={most} error={refused.token_allocation} onChange={setMost} />
        <Button size="xs" variant="default" type="submit" loading={isBusy} disabled={most === ''}>
          Set a limit
        </Button>
      </Group>
    </form>
  )
}

interface TokensProps {
  label: string
  value: number | string
  error: string | undefined
  onChange: (value: number | string) => void
}

function Tokens(props: TokensProps) {
  return <NumberInput {...props} size="xs" w={140} min={0} step={1_000} thousandSeparator="," />
}
