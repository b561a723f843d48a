import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whyNoCost } from './cost-reason.ts'

const usage = (total_tokens: number) => ({
  input_tokens: total_tokens,
  output_tokens: 0,
  total_tokens,
  estimated: false,
  cost_usd: null,
})

test('a run without tokens costs nothing yet; otherwise its model has no price', () => {
  assert.match(whyNoCost({ usage: usage(0), model: null }), /no tokens were used/)
  const priceless = whyNoCost({ usage: usage(5), model: { provider: 'local', name: 'owl-7b' } })
  assert.match(priceless, /the model owl-7b of local has no price\. An admin sets prices under Settings → Providers/)
  assert.match(whyNoCost({ usage: usage(5), model: null }), /: the model has no price/)
})
