/** The verdict of a leaf: true, or a text that begins with true, yes or done, because an agent answers in words. */
export const isTrue = (value: unknown): boolean =>
  value === true || (typeof value === 'string' && /^\s*(true|yes|done)\b/i.test(value))
