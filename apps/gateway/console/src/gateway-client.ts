import type { Problem } from "./gateway-json.ts";

/** How a request came out; only a broken promise of the page's own throws. */
export type Answer<Value> =
  | { readonly kind: "answer"; readonly value: Value }
  | { readonly kind: "refused"; readonly problem: Problem; readonly retryAfterMs?: number }
  /** No gateway answered: it restarts, the network is away, or the request was aborted. */
  | { readonly kind: "unreachable"; readonly reason: string };

/** The bearer token of this page, if the gateway wants one. */
export interface TokenSource {
  read(): string | undefined;
  /** Asks whoever sits there; resolves once there is another one. `wasRefused`: the one that was sent is wrong. */
  ask(wasRefused: boolean): Promise<void>;
}

export interface ClientDeps {
  readonly fetch: typeof fetch;
  readonly tokens: TokenSource;
  /** What relative addresses are relative to: the page may be served below another path. */
  readonly baseUrl: string;
}

export interface ClientRequest {
  readonly method?: "GET" | "POST" | "DELETE";
  readonly body?: unknown;
  readonly lastEventId?: string | undefined;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

/** What a proxy or a strange server says in place of a problem is told by its status. */
async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => "");
  try {
    const told = JSON.parse(text) as Partial<Problem> | null;
    if (typeof told?.code === "string" && typeof told.detail === "string")
      return { status: response.status, code: told.code, detail: told.detail };
  } catch {
    // No JSON: told below.
  }
  return {
    status: response.status,
    code: `http_${response.status}`,
    detail: `The server answered ${response.status}.`,
  };
}

function retryAfterOf(response: Response): { retryAfterMs?: number } {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {};
}

/**
 * Speaks to the gateway that served the page. The token travels in a header alone; where it is missing or wrong the
 * request waits for another one and is sent again.
 */
export class GatewayClient {
  readonly #deps: ClientDeps;

  constructor(deps: ClientDeps) {
    this.#deps = deps;
  }

  async json<Value>(path: string, request: ClientRequest = {}): Promise<Answer<Value>> {
    const answer = await this.open(path, request);
    if (answer.kind !== "answer") return answer;
    try {
      return { kind: "answer", value: (await answer.value.json()) as Value };
    } catch (error) {
      return { kind: "unreachable", reason: String(error) };
    }
  }

  /** The response itself, once its head says 2xx: for streams. */
  async open(path: string, request: ClientRequest = {}): Promise<Answer<Response>> {
    const { fetch, tokens, baseUrl } = this.#deps;
    for (;;) {
      const token = tokens.read();
      let response: Response;
      try {
        response = await fetch(new URL(path, baseUrl), this.#init(request, token));
      } catch (error) {
        return { kind: "unreachable", reason: error instanceof Error ? error.message : String(error) };
      }
      if (response.ok) return { kind: "answer", value: response };
      const problem = await problemOf(response);
      if (response.status !== 401) return { kind: "refused", problem, ...retryAfterOf(response) };
      // Meanwhile another request may have got a better one.
      if (tokens.read() === token) await tokens.ask(token !== undefined);
      if (request.signal?.aborted) return { kind: "unreachable", reason: "aborted" };
    }
  }

  #init({ method = "GET", body, lastEventId, accept, signal }: ClientRequest, token: string | undefined): RequestInit {
    return {
      method,
      headers: {
        accept: accept ?? "application/json",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
      credentials: "omit",
      redirect: "error",
    };
  }
}

/** The address of something of a session; whatever stands in the id, it stays one part of the path. */
export const sessionPath = (sessionId: string, rest = ""): string =>
  `v1/sessions/${encodeURIComponent(sessionId)}${rest}`;
