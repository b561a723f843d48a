import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { ApiError } from '../../api/client.ts'
import { definitionQuery } from '../../api/flow-definitions.ts'
import { Unknown } from '../../app/unknown.tsx'
import { Failure, Loading, Stale } from '../../parts/states.tsx'
import { FlowEditor } from './editor.tsx'

const route = getRouteApi('/projects/$projectId/flows/definitions/$flowId')

/** The editor takes the flow once: a later reading must not touch what somebody writes. */
export function FlowDefinitionPage() {
  const { projectId, flowId } = route.useParams()
  const flow = useQuery(definitionQuery(projectId, flowId))
  if (flow.isPending) return <Loading lines={10} />
  if (flow.error instanceof ApiError && flow.error.status === 404) return <Unknown />
  if (!flow.data) {
    return <Failure what="The flow could not be read." error={flow.error} onRetry={() => void flow.refetch()} />
  }
  return (
    <>
      {flow.isError && <Stale onRetry={() => void flow.refetch()} />}
      <FlowEditor key={flow.data.id} projectId={projectId} flow={flow.data} beginning={flow.data} />
    </>
  )
}
