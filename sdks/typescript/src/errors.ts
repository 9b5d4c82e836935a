/** All errors: `import { TimerNotPending } from "tocsin-client/errors"`. */

export * from "./error-bases.js";
export * from "./generated/errors.js";
