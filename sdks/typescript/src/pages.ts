/** Lists that are longer than an answer. */

/** A page, and the cursor of the next one. */
export interface Page<Element> {
  readonly elements: readonly Element[];
  readonly next: string | undefined;
}

/** All elements, read page by page while they are iterated over. Each iteration starts over. */
export class Pages<Element> implements AsyncIterable<Element> {
  /** Made by the methods that list. */
  constructor(private readonly fetch: (cursor: string | undefined) => Promise<Page<Element>>) {}

  /** The pages; one may be empty without being the last. */
  async *pages(): AsyncGenerator<readonly Element[], void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.fetch(cursor);
      yield page.elements;
      cursor = page.next;
    } while (cursor !== undefined);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Element, void, undefined> {
    for await (const page of this.pages()) {
      yield* page;
    }
  }
}
