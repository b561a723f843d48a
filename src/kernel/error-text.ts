/** The message of anything that was thrown. */
export const errorText = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message || thrown.name : String(thrown)
