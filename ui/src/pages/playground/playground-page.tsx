// A chat with the supervisor system of a project. The chat and the variant are in the address.
import { Button, Group, Select, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { MessageSquarePlus } from 'lucide-react'
import { useEffect } from 'react'
import { newKey } from '../../api/client.ts'
import { systemsQuery } from '../../api/prompts.ts'
import { useRole } from '../../app/role.ts'
import { lazily } from '../../parts/lazily.tsx'
import { PageHead } from '../../parts/page-head.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty } from '../../parts/states.tsx'

const ROUTE = '/projects/$projectId/playground'
const route = getRouteApi(ROUTE)

const Chat = lazily(async () => (await import('./chat.tsx')).Chat)

export function PlaygroundPage() {
  const { projectId } = route.useParams()
  const { chat, variant } = route.useSearch()
  const navigate = useNavigate()
  const mayChat = useRole(projectId) !== 'viewer'
  const goTo = (search: { chat?: string; variant?: string | undefined }, replace = false): void => {
    const given = Object.entries({ chat, variant, ...search }).filter(([, value]) => value)
    void navigate({ to: ROUTE, params: { projectId }, search: Object.fromEntries(given), replace })
  }
  useEffect(() => {
    if (chat === undefined && mayChat) goTo({ chat: newKey() }, true)
  })
  return (
    <>
      <PageHead name="Playground" title={<Title order={1}>Playground</Title>}>
        {mayChat && (
          <Group gap="xs" align="flex-end">
            <Variant
              projectId={projectId}
              value={variant ?? null}
              onChange={(value) => goTo({ variant: value ?? undefined }, true)}
            />
            <Button
              size="xs"
              variant="default"
              leftSection={<MessageSquarePlus size={13} aria-hidden />}
              onClick={() => goTo({ chat: newKey() })}
            >
              New chat
            </Button>
          </Group>
        )}
      </PageHead>
      {!mayChat && <Empty>Members and admins chat with the supervisor here. You may read its runs.</Empty>}
      {mayChat && chat !== undefined && (
        <Panel name="The chat">
          <Chat
            key={`${projectId} ${chat}`}
            projectId={projectId}
            chatId={chat}
            variant={variant ?? null}
            onOpen={(id) => goTo({ chat: id })}
          />
        </Panel>
      )}
    </>
  )
}

function Variant(props: { projectId: string; value: string | null; onChange: (value: string | null) => void }) {
  const { data } = useQuery(systemsQuery(props.projectId))
  const systems = data?.items ?? []
  const names = new Set([...systems.map(({ variant }) => variant), ...(props.value === null ? [] : [props.value])])
  return (
    <Select
      aria-label="Variant"
      placeholder="Variant by weight"
      size="xs"
      w={170}
      clearable
      data={[...names]}
      value={props.value}
      onChange={props.onChange}
    />
  )
}
