import assert from "node:assert/strict";
import { test } from "node:test";
import { hasMembers, isWritten } from "../dist/core/updates.js";

const SHOWN = {
  namespace: "n",
  id: "t",
  executeAt: "2027-01-31T12:00:00.5Z",
  expireAfter: "1h30m",
  tags: [],
  payload: { a: [1] },
  headers: { a: "b", authorization: "[redacted]" },
  retryPolicy: { maxAttempts: 5, initialInterval: "1s" },
};

test("what is stored has the members of an update, or not", () => {
  for (const [sent, expected] of [
    [{ executeAt: "2027-01-31T13:00:00.500000+01:00" }, true],
    [{ executeAt: "2027-01-31T12:00:00Z" }, false],
    [{ expireAfter: "90m" }, true],
    [{ expireAfter: null }, false],
    [{ tags: null, description: null }, true],
    [{ tags: ["a"] }, false],
    [{ payload: { a: [1] } }, true],
    [{ payload: { a: { 0: 1 } } }, false],
    [{ headers: { a: "b", authorization: "Bearer x" } }, false],
    [{ headers: { a: "b" } }, false],
    [{ retryPolicy: { maxAttempts: 5, initialInterval: "1000ms" } }, true],
    [{ retryPolicy: { maxAttempts: 4 } }, false],
    [{ delay: "1h" }, false],
    [{ tags: [], expectedVersion: 3 }, true],
  ]) {
    assert.equal(hasMembers(SHOWN, { namespace: "n", timerId: "t", ...sent }), expected, JSON.stringify(sent));
  }
  assert.equal(hasMembers({ body: { text: "" } }, { payload: null }), false);
});

test("what is stored was written by a call that was refused for its version, or not", () => {
  const conflict = { code: "VERSION_CONFLICT" };
  const sent = { tags: [], paused: true, expectedVersion: 3 };
  const shown = { ...SHOWN, status: "paused", version: 4 };
  assert.equal(isWritten(shown, sent, conflict), true);
  assert.equal(isWritten({ ...shown, version: 5 }, sent, conflict), false);
  assert.equal(isWritten({ ...shown, version: 5 }, sent, { code: "SCHEDULE_ENDED" }), true);
  assert.equal(isWritten({ ...shown, status: "active" }, sent, conflict), false);
  assert.equal(isWritten(shown, { ...sent, dryRun: true }, conflict), false);
});
