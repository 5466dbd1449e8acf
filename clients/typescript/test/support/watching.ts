import type { JsonValue } from "@bufbuild/protobuf";
import { within } from "./within.js";

const CLOSE_LIMIT_MS = 10_000;

/** A watch of the library that is read in the background. */
export class Watch {
  private readonly items: JsonValue[] = [];
  private readonly left = new AbortController();
  private readonly reading: Promise<void>;
  private taken = 0;
  private ended = false;
  private error: unknown;
  private tell = () => {};

  constructor(open: (signal: AbortSignal) => AsyncIterable<JsonValue>) {
    this.reading = this.read(open(this.left.signal));
  }

  /** Takes items until one fits; an error of the watch is thrown, its end is one. */
  async until(fits: (item: JsonValue) => boolean): Promise<JsonValue> {
    for (;;) {
      const item = await this.next();
      if (fits(item)) return item;
    }
  }

  /** Gives all items, those taken before too, when the watch has ended by itself. */
  async end(): Promise<JsonValue[]> {
    while (!this.ended) await this.news();
    if (this.error) throw this.error;
    return this.items;
  }

  async close(): Promise<void> {
    this.left.abort();
    await within(CLOSE_LIMIT_MS, "the end of a watch that was left", this.reading);
  }

  private async next(): Promise<JsonValue> {
    while (this.taken === this.items.length && !this.ended) await this.news();
    const item = this.items[this.taken++];
    if (item !== undefined) return item;
    if (this.error) throw this.error;
    throw new Error(`the watch ended without it, after ${JSON.stringify(this.items.slice(-3))}`);
  }

  private news(): Promise<void> {
    return new Promise((resolve) => (this.tell = resolve));
  }

  private async read(items: AsyncIterable<JsonValue>): Promise<void> {
    try {
      for await (const item of items) {
        this.items.push(item);
        this.tell();
      }
    } catch (error) {
      this.error = error;
    } finally {
      this.ended = true;
      this.tell();
    }
  }
}
