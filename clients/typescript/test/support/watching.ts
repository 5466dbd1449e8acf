import type { Json } from "./scenarios.js";

/** A watch of the library that is read in the background. */
export class Watch<T> {
  private readonly items: Json[] = [];
  private readonly left = new AbortController();
  private readonly reading: Promise<void>;
  private taken = 0;
  private ended = false;
  private error: unknown;
  private tell = () => {};

  constructor(open: (signal: AbortSignal) => AsyncIterable<T>, show: (item: T) => Json) {
    this.reading = this.read(open(this.left.signal), show);
  }

  /** Takes items until one fits; an error of the watch is thrown, its end is one. */
  async until(fits: (item: Json) => boolean): Promise<Json> {
    for (;;) {
      while (this.taken === this.items.length && !this.ended) await this.news();
      if (this.taken === this.items.length) {
        if (this.error) throw this.error;
        throw new Error(`the watch ended without it, after ${JSON.stringify(this.items.slice(-3))}`);
      }
      const item = this.items[this.taken++];
      if (fits(item)) return item;
    }
  }

  async end(): Promise<Json[]> {
    while (!this.ended) await this.news();
    if (this.error) throw this.error;
    return this.items;
  }

  async close(): Promise<void> {
    this.left.abort();
    await this.reading;
  }

  private news(): Promise<void> {
    return new Promise((resolve) => (this.tell = resolve));
  }

  private async read(items: AsyncIterable<T>, show: (item: T) => Json): Promise<void> {
    try {
      for await (const item of items) {
        this.items.push(show(item));
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
