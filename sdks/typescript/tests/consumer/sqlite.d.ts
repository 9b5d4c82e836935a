/** As node:sqlite of Node.js 22 declares it. */
export declare class DatabaseSync {
  exec(sql: string): void;
  prepare(sql: string): StatementSync;
}
type Input = null | number | bigint | string | NodeJS.ArrayBufferView;
interface StatementSync {
  all(namedParameters: Record<string, Input>, ...anonymousParameters: Input[]): unknown[];
  all(...anonymousParameters: Input[]): unknown[];
  run(namedParameters: Record<string, Input>, ...anonymousParameters: Input[]): { changes: number | bigint };
  run(...anonymousParameters: Input[]): { changes: number | bigint };
}
