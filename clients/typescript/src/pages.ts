import type { Message } from "@bufbuild/protobuf";

/** What a list's response is a page of. */
export type Item<R> = { [F in keyof R]-?: R[F] extends Message[] ? R[F][number] : never }[keyof R];

/** Gives every item of a list, page after page: `pages(client.runs.listRuns, { filter })`. */
export async function* pages<Q, R extends { nextPageToken: string }>(list: (request?: Q) => Promise<R>, request?: Q) {
  for (let next = request; ; ) {
    const page: R = await list(next);
    yield* Object.values(page as object).find(Array.isArray) as Item<R>[];
    if (!page.nextPageToken) return;
    next = { ...request, pageToken: page.nextPageToken } as Q;
  }
}
