/** The words with which a run that continues another is told to continue. The offline model knows them. */
export const CONTINUE = 'Continue where you stopped.'
