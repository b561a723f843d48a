// A new flow: blank, from a template, or as a copy of a stored one.
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { ApiError } from '../../api/client.ts'
import { definitionQuery, templateDefinitionsQuery } from '../../api/flow-definitions.ts'
import { Unknown } from '../../app/unknown.tsx'
import { Failure, Loading } from '../../parts/states.tsx'
import { beginningOf } from './begin-with.tsx'
import { FlowEditor } from './editor.tsx'
import { blankFunction } from './tree-edits.ts'

const route = getRouteApi('/projects/$projectId/flows/new')
const BLANK = { name: '', root: { type: 'sequential', steps: [blankFunction] } }

export function NewFlowPage() {
  const { projectId } = route.useParams()
  const { template, from } = route.useSearch()
  if (from !== undefined) return <CopyOfFlow key={from} projectId={projectId} flowId={from} />
  if (template !== undefined) return <FromTemplate key={template} projectId={projectId} name={template} />
  return <FlowEditor key={projectId} projectId={projectId} flow={null} beginning={BLANK} />
}

function FromTemplate({ projectId, name }: { projectId: string; name: string }) {
  const templates = useQuery(templateDefinitionsQuery(projectId))
  if (templates.isPending) return <Loading lines={10} />
  if (!templates.data) {
    return (
      <Failure
        what="The templates could not be read."
        error={templates.error}
        onRetry={() => void templates.refetch()}
      />
    )
  }
  const template = templates.data.items.find((each) => each.name === name)
  if (!template) return <Unknown />
  return <FlowEditor projectId={projectId} flow={null} beginning={beginningOf(template)} origin={`template ${name}`} />
}

function CopyOfFlow({ projectId, flowId }: { projectId: string; flowId: string }) {
  const flow = useQuery(definitionQuery(projectId, flowId))
  if (flow.isPending) return <Loading lines={10} />
  if (flow.error instanceof ApiError && flow.error.status === 404) return <Unknown />
  if (!flow.data) {
    return <Failure what="The flow could not be read." error={flow.error} onRetry={() => void flow.refetch()} />
  }
  const { name, root } = flow.data
  return (
    <FlowEditor
      projectId={projectId}
      flow={null}
      beginning={{ name: `${name} copy`, root }}
      origin={`copy ${flowId}`}
    />
  )
}
