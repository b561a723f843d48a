// Prices as people write them: one model per line.

export type Prices = Record<string, { input: number; output: number }>

export const pricesText = (prices: Prices): string =>
  Object.entries(prices)
    .map(([model, { input, output }]) => `${model} ${input} ${output}`)
    .join('\n')

export function pricesFrom(text: string): { prices: Prices; problem: string | null } {
  const prices: Prices = {}
  for (const line of text.split('\n').filter((each) => each.trim() !== '')) {
    const [, model = '', input = '', output = ''] =
      /^\s*(\S.*?)\s+(\d+(?:\.\d+)?)\s+(\d+(?:\.\d+)?)\s*$/.exec(line) ?? []
    if (model === '') return { prices: {}, problem: `This line is not a name and two prices: ${line.trim()}` }
    prices[model] = { input: Number(input), output: Number(output) }
  }
  return { prices, problem: null }
}
