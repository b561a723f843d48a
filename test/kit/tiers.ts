// The two tiers of tests: `npm test` has every kind of test, `npm run test:system` the remaining cases. A file called
// `*.system.test.ts` belongs to the second tier as a whole. A file with cases for both tiers takes its `test` from
// here: `inTest` for cases of the first tier, `inSystem` for cases of the second. A file that is run by its name has
// all cases.
import { test } from 'node:test'

const tier = process.env.MUSTER_TEST_TIER ?? 'all'

/** For a test that tries more of the same in the second tier. */
export const isSystem = tier === 'system'
/** For a test that is in both tiers and does less in the first. */
export const isUsual = tier === 'usual'

type Register = typeof test

// A case that is left out is not reported: the other tier runs it.
const leftOut = (async () => {}) as unknown as Register // only ever called, never used as a namespace

/** For a case that both tiers run, because the first tier does less of it (`isUsual`). */
export const inBoth: Register = test
export const inTest: Register = tier === 'system' ? leftOut : test
export const inSystem: Register = tier === 'usual' ? leftOut : test

/** For a table of cases: the first tier has the cases that represent their kind, the second has the others. */
export const inTier = (isOfItsKind: boolean): Register => (isOfItsKind ? inTest : inSystem)
