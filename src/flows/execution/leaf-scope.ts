// The scope of the keys of a leaf: the same in every attempt at it, in every life of the patterns around it, and in every
// flow run that resumes this one.
import { callKey, identityOf } from '../../kernel/call-key.ts'
import { unitOf } from '../machine/leaf-id.ts'
import type { ClaimedFlow } from './claim.ts'

/** The part of the scope that all leaves of the flow run share. */
export const flowScope = ({ id, key_scope: scope }: Pick<ClaimedFlow, 'id' | 'key_scope'>): string => scope ?? id

/** `place` is the place of the call, for a leaf that is called several times. */
export const leafScope = (scope: string, leafId: string, place?: number): string =>
  `${scope}:${unitOf(leafId)}${place === undefined ? '' : `:${place}`}`

/** The key of a function's call. The scope has one such call; a call of another function or with other arguments is another. */
export const functionKey = (scope: string, name: string, argument: unknown): string =>
  callKey(scope, identityOf({ name, args: argument ?? null, effect: 'keyed' }), 1)
