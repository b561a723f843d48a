// cmd-k: pages, projects, actions, and everything that has a name.
import { useHotkeys } from '@mantine/hooks'
import { OnWish } from './on-wish.tsx'
import { jump } from './wishes.ts'

const load = async () => (await import('./jump-dialog.tsx')).JumpDialog

export function Jump() {
  useHotkeys([['mod+K', jump.want]], [], true)
  return <OnWish name="The search" of={jump} load={load} />
}
