// The prompt library: every prompt with its variants at the left, the chosen one at the right; without a choice, the
// systems that use them.
import { Button, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { promptsQuery, type VariantKey } from '../../api/prompts.ts'
import { useRole } from '../../app/role.ts'
import { PageHead } from '../../parts/page-head.tsx'
import { Empty, Failure, Loading, Stale } from '../../parts/states.tsx'
import { PromptEditor } from './prompt-editor.tsx'
import { PromptPanel } from './prompt-panel.tsx'
import { groupPrompts, namesOfLive, type PromptGroup } from './prompt-text.ts'
import classes from './prompts.module.css'
import { SystemsPanel } from './systems-panel.tsx'
import { useOpenVariant } from './use-open-variant.ts'

const route = getRouteApi('/projects/$projectId/prompts')

export function PromptsPage() {
  const { projectId } = route.useParams()
  const { prompt } = route.useSearch()
  const isAdmin = useRole(projectId) === 'admin'
  const prompts = useQuery(promptsQuery(projectId))
  const open = useOpenVariant(projectId)
  const [isNew, setIsNew] = useState(false)
  return (
    <>
      <PageHead name="Prompts" title={<Title order={1}>Prompts</Title>}>
        {isAdmin && (
          <Button
            size="xs"
            variant="default"
            leftSection={<Plus size={13} aria-hidden />}
            onClick={() => setIsNew(true)}
          >
            New prompt
          </Button>
        )}
      </PageHead>
      {prompts.isError && prompts.data && <Stale onRetry={() => void prompts.refetch()} />}
      {prompts.isPending && <Loading lines={10} />}
      {prompts.isError && !prompts.data && (
        <Failure what="The prompts could not be read." error={prompts.error} onRetry={() => void prompts.refetch()} />
      )}
      {prompts.data && (
        <div className={classes.columns}>
          <PromptList groups={groupPrompts(prompts.data)} projectId={projectId} chosen={prompt} />
          <div className={classes.detail}>
            {prompt === undefined ? (
              <SystemsPanel projectId={projectId} prompts={prompts.data} />
            ) : (
              <PromptPanel key={prompt} projectId={projectId} promptId={prompt} prompts={prompts.data} />
            )}
          </div>
        </div>
      )}
      {isNew && (
        <PromptEditor
          of={{ type: 'new prompt', projectId }}
          onClose={() => setIsNew(false)}
          onSaved={(key: VariantKey) => open(key.promptId, key.variantId)}
        />
      )}
    </>
  )
}

function PromptList(props: { groups: PromptGroup[]; projectId: string; chosen: string | undefined }) {
  const { groups, projectId, chosen } = props
  return (
    <section className={classes.list} aria-label="Prompt list">
      <Link
        to="/projects/$projectId/prompts"
        params={{ projectId }}
        className={classes.entry ?? ''}
        activeOptions={{ exact: true, includeSearch: true }}
        {...(chosen === undefined && { 'aria-current': 'page' })}
      >
        Systems
      </Link>
      {groups.length === 0 && <Empty>There are no prompts yet.</Empty>}
      {[true, false].map((isRequired) => {
        const shown = groups.filter((group) => group.isRequired === isRequired)
        if (shown.length === 0) return null
        return (
          <div key={String(isRequired)}>
            <h2 className={classes.group}>{isRequired ? 'Needed by the supervisor' : 'Your own'}</h2>
            <ul>
              {shown.map((group) => (
                <li key={group.promptId}>
                  <Link
                    to="/projects/$projectId/prompts"
                    params={{ projectId }}
                    search={{ prompt: group.promptId }}
                    className={classes.entry ?? ''}
                    {...(group.promptId === chosen && { 'aria-current': 'page' })}
                  >
                    {group.promptId}
                  </Link>
                  <div className={`${classes.variants} dim number`}>{variantsIn(group)}</div>
                </li>
              ))}
            </ul>
          </div>
        )
      })}
    </section>
  )
}

function variantsIn(group: PromptGroup): string {
  const live = new Set(namesOfLive(group))
  return group.variants
    .map(({ variant_id, version }) => (live.has(variant_id) ? `${variant_id} v${version}` : `${variant_id} deleted`))
    .join(' · ')
}
