import autocannon from 'autocannon'

export interface Request {
  url: string
  headers: Record<string, string>
  body: unknown
}

export interface Round {
  perSecond: number
  p50Ms: number
  p99Ms: number
  answers: number
}

/** Posts the same request over many connections. Any answer but a 2xx, and any broken connection, ends the bench. */
export async function applyLoad(request: Request, options: { connections: number; seconds: number }): Promise<Round> {
  const result = await autocannon({
    url: request.url,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...request.headers },
    body: JSON.stringify(request.body),
    connections: options.connections,
    duration: options.seconds,
  })
  const { non2xx, errors, timeouts } = result
  if (non2xx + errors + timeouts > 0) {
    throw new Error(`${request.url}: ${non2xx} answers were no success, ${errors} errors, ${timeouts} time-outs`)
  }
  return {
    perSecond: result['2xx'] / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    answers: result['2xx'],
  }
}
