// The code of a page or a panel is loaded when it is first shown. A browser that could not load a module keeps the
// failure until the whole page is loaded anew, so another import of the module would not help.

/** The code of a page or a panel could not be loaded. */
export class CodeMissing extends Error {
  readonly url: string

  constructor(cause: unknown) {
    super('The server could not be reached for a part of this page.', { cause })
    // Browsers name the file in their message, each in its own words; the page itself is as good for a look.
    this.url = /\S*\/assets\/\S+?\.(?:js|css)/.exec(String(cause))?.[0] ?? location.href
  }
}

export async function loadCode<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    throw new CodeMissing(error)
  }
}

/** Prepares another try after an error: if code was missing and the server answers again, the page is loaded anew. */
export async function beforeRetry(error: unknown): Promise<'may try' | 'still away'> {
  if (!(error instanceof CodeMissing)) return 'may try'
  const answers = await fetch(error.url, { cache: 'reload' }).then(
    () => true,
    () => false,
  )
  if (!answers) return 'still away'
  location.reload()
  return new Promise(() => {})
}
