import type { Role } from '../../../src/kernel/role.ts'
import { useMe } from './gate.tsx'

/** The role of the signed-in person in a project. The instance admin may do everything. */
export function useRole(projectId: string): Role {
  const me = useMe()
  return me.instance_admin ? 'admin' : (me.projects.find(({ id }) => id === projectId)?.role ?? 'viewer')
}
