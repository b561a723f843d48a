import { organisationReads } from '../../api/organisation.ts'
import { useWrite } from '../../parts/use-write.ts'

/** Changes something of the organisation. */
export function useAct(projectId: string) {
  const { write, ...state } = useWrite({ reads: organisationReads(projectId) })
  return { act: write, ...state }
}
