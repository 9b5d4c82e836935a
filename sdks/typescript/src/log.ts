/** Where problems are reported that no caller sees. `console` is one; so are the loggers of most frameworks. */
export interface Log {
  warn(message: string): void;
  error(message: string): void;
}
