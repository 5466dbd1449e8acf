import type { Message } from "@bufbuild/protobuf";

/** What a list's response is a page of. */
export type Item<R> = {
  [Field in keyof R]-?: R[Field] extends Message[] ? R[Field][number] : never;
}[keyof R];

type Page = Message & { nextPageToken: string };

/**
 * Gives every item of a list, page after page, until the first error:
 * `pages(client.runs.listRuns, { filter })`. It begins at the request's `pageToken`, if it has one.
 */
export async function* pages<Q, R extends Page>(list: (request?: Q) => Promise<R>, request?: Q) {
  let next = request;
  for (;;) {
    const page = await list(next);
    // Every list's response has just one repeated field.
    yield* Object.values(page).find(Array.isArray) as Item<R>[];
    if (page.nextPageToken === "") return;
    next = { ...request, pageToken: page.nextPageToken } as Q;
  }
}
