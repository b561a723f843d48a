// cmd-k: pages, projects, actions, and everything that has a name.
import { useHotkeys } from '@mantine/hooks'
import { LoadedOnOpen } from './loaded-on-open.tsx'
import { jump } from './openers.ts'

const load = async () => (await import('./jump-dialog.tsx')).JumpDialog

export function Jump() {
  useHotkeys([['mod+K', jump.open]], [], true)
  return <LoadedOnOpen name="The search" of={jump} load={load} />
}
