/** Gives what is promised; an error that names it if it is not there after so many milliseconds. */
export async function within<T>(limitMs: number, what: string, promised: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<never>((_, reject) => {
    const error = new Error(`${what} takes more than ${Math.round(limitMs / 1000)} s`);
    timer = setTimeout(reject, limitMs, error);
  });
  try {
    return await Promise.race([promised, timeUp]);
  } finally {
    clearTimeout(timer);
  }
}
