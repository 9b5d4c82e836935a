/** A clock that sleeps move, and a server that answers from a list. */

export class FakeClock {
  ms = 1_000_000;
  slept = [];
  chance = 0.5;
  monotonicMs() {
    return this.ms;
  }
  nowMs() {
    return this.ms;
  }
  random() {
    return this.chance;
  }
  async sleep(ms, signal) {
    signal?.throwIfAborted();
    this.slept.push(ms);
    this.ms += ms;
  }
}

/** Answers requests in turn: a function gets the request; `Error` is thrown; else `[status, body, headers]`. */
export function answering(...answers) {
  const sent = [];
  const fetch = async (url, { method, headers, body }) => {
    const request = {
      url,
      method,
      headers: new Headers(headers),
      body: body === undefined ? undefined : JSON.parse(body),
    };
    sent.push(request);
    const next = answers.length > 1 ? answers.shift() : answers[0];
    const answer = typeof next === "function" ? await next(request) : next;
    if (answer instanceof Error) {
      throw answer;
    }
    const [status, content = {}, given = {}] = answer;
    return new Response(status === 204 || status === 304 ? null : JSON.stringify(content), { status, headers: given });
  };
  return { fetch, sent };
}

export const TIMER = {
  namespace: "n",
  id: "t",
  timerUuid: "u",
  shardId: 0,
  status: "pending",
  executeAt: "2027-01-31T12:00:00Z",
  callbackUrl: "http://x/",
  method: "POST",
  headers: {},
  callbackTimeoutSeconds: 10,
  tags: [],
  attempts: 0,
  attemptLog: [],
  createdAt: "2027-01-31T12:00:00Z",
  updatedAt: "2027-01-31T12:00:00Z",
};

export const NEW = { namespace: "n", id: "t", callbackUrl: "http://x/", delay: "10s" };

export function refusal(code, status) {
  return [status, { error: code, message: "no", status, errors: [] }];
}

export const NAMESPACE = {
  name: "n",
  numShards: 1,
  version: 1,
  history: "off",
  retention: "7d",
  paused: false,
  signed: false,
  answers: "standard",
  retryPolicy: null,
  createdAt: "2027-01-31T12:00:00Z",
  updatedAt: "2027-01-31T12:00:00Z",
};
