import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { verifyDelivery } from './verify-delivery.ts'

const makeSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`
const secret = makeSecret()
const old = makeSecret()
const now = new Date('2026-03-01T12:00:00.999Z')
const nowS = Math.floor(now.getTime() / 1_000)
const body = Buffer.from('{"order":7,"note":"für Ä 🙂"}')

/** Signed by the standard's own library. */
function signed(changes: { with?: string; id?: string; atS?: number; body?: Buffer } = {}) {
  const { with: key = secret, id = 'msg_1', atS = nowS } = changes
  return {
    'webhook-id': id,
    'webhook-timestamp': String(atS),
    'webhook-signature': new Webhook(key).sign(id, new Date(atS * 1_000), changes.body ?? body),
  }
}

const holds = (headers: Record<string, string>, sent = body, secrets = [secret, old]): boolean =>
  verifyDelivery(headers, sent, { secrets, now })

test('signatures of the standard’s own library are valid, with the current secret and the old one', () => {
  assert.ok(holds(signed()))
  assert.ok(holds(signed({ with: old })))
  assert.ok(!holds(signed({ with: old }), body, [secret]))
  assert.ok(!holds(signed({ with: makeSecret() })))
  assert.ok(!holds(signed(), body, []))
})

test('bodies of no bytes and of any bytes are signed as they are', () => {
  for (const bytes of [Buffer.alloc(0), Buffer.from('null'), Buffer.from('[1]\n'), Buffer.from('\ufeff{}')]) {
    assert.ok(holds(signed({ body: bytes }), bytes), bytes.toString('hex'))
  }
})

test('one changed byte anywhere in the body makes the signature invalid', () => {
  const headers = signed()
  for (let at = 0; at < body.length; at++) {
    const changed = Buffer.from(body)
    changed[at] = (changed[at] ?? 0) ^ 1
    assert.ok(!holds(headers, changed), `byte ${at}`)
  }
  assert.ok(!holds(headers, Buffer.concat([body, Buffer.from(' ')])))
  assert.ok(!holds(headers, body.subarray(1)))
})

test('invalid UTF-8 bytes are not accepted for the replacement character', () => {
  const replaced = Buffer.from('"\ufffd"')
  assert.ok(holds(signed({ body: replaced }), replaced))
  assert.ok(!holds(signed({ body: replaced }), Buffer.from([0x22, 0xff, 0x22])))
})

test('a changed id, time or signature is refused', () => {
  const headers = signed()
  const signature = headers['webhook-signature']
  const first = signature.at(3) === 'A' ? 'B' : 'A'
  for (const change of [
    { 'webhook-id': 'msg_2' },
    { 'webhook-id': 'MSG_1' },
    { 'webhook-timestamp': String(nowS + 1) },
    { 'webhook-timestamp': `0${nowS}` },
    { 'webhook-timestamp': `${nowS}abc` },
    { 'webhook-timestamp': `${nowS}.0` },
    { 'webhook-signature': `v1,${first}${signature.slice(4)}` },
    { 'webhook-signature': signature.slice(0, -1) },
    { 'webhook-signature': `${signature}=` },
    { 'webhook-signature': 'v1,' },
    { 'webhook-signature': 'v1' },
    { 'webhook-signature': '' },
  ]) {
    assert.ok(!holds({ ...headers, ...change }), JSON.stringify(change))
  }
})

for (const [offsetS, expected] of [
  [-300, true],
  [-301, false],
  [300, true],
  [301, false],
  [-86_400, false],
] as const) {
  test(`a delivery signed ${offsetS} s from now ${expected ? 'is accepted' : 'is refused'}`, () => {
    assert.equal(holds(signed({ atS: nowS + offsetS })), expected)
  })
}

test('a time that is not plain digits is refused, even if it was signed so', () => {
  const signedAs = (timestamp: string) => {
    const key = Buffer.from(secret.slice(6), 'base64')
    const hmac = createHmac('sha256', key).update(`msg_1.${timestamp}.`).update(body)
    return { ...signed(), 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${hmac.digest('base64')}` }
  }
  assert.ok(holds(signedAs(String(nowS))))
  for (const timestamp of [`+${nowS}`, `${nowS}.0`, `${nowS}e0`, `0x${nowS.toString(16)}`, now.toISOString(), '']) {
    assert.ok(!holds(signedAs(timestamp)), timestamp)
  }
})

test('each of the three headers is needed', () => {
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const) {
    const { [name]: _, ...rest } = signed()
    assert.ok(!holds(rest), name)
  }
  assert.ok(!holds({}))
})

test('one right signature among several is enough, and only version 1 counts', () => {
  const headers = signed()
  const right = headers['webhook-signature']
  const wrong = signed({ with: makeSecret() })['webhook-signature']
  const other = right.replace('v1,', 'v1a,')
  const among = (signatures: string) => holds({ ...headers, 'webhook-signature': signatures })
  assert.ok(among(`${wrong} ${right}`))
  assert.ok(among(`${other}  ${wrong} ${right}`))
  assert.ok(!among(`${wrong} ${wrong}`))
  assert.ok(!among(other))
  assert.ok(!among(right.replace('v1,', 'V1,')))
  assert.ok(!among(right.replace('v1,', 'v2,')))
  assert.ok(!among(right.replace('v1,', '')))
})

test('the secret itself is a bearer token; nothing else is', () => {
  const bearer = (authorization: string) => holds({ authorization })
  assert.ok(bearer(`Bearer ${secret}`))
  assert.ok(bearer(`bearer  ${old}`))
  for (const wrong of [makeSecret(), secret.slice(0, -1), `${secret}x`, secret.slice(6), secret.toLowerCase(), '']) {
    assert.ok(!bearer(`Bearer ${wrong}`), wrong)
  }
  assert.ok(!bearer(secret))
  assert.ok(!bearer(`Basic ${btoa(`:${secret}`)}`))
})

test('if a signature is sent, it decides, and the bearer token does not count', () => {
  assert.ok(holds({ ...signed(), authorization: 'Bearer of something else' }))
  assert.ok(!holds({ ...signed({ with: makeSecret() }), authorization: `Bearer ${secret}` }))
})
