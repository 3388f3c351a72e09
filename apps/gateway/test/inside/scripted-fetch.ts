/** A gateway that answers as a test says, request by request, with streams that a test feeds and cuts. */

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Headers;
  readonly body: unknown;
}

export interface FedStream {
  readonly response: Response;
  say(event: object, id?: string): void;
  raw(text: string): void;
  end(): void;
  /** As a connection that dies. */
  cut(): void;
}

export function fedStream(): FedStream {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (own) => {
      controller = own;
    },
  });
  const raw = (text: string): void => controller?.enqueue(new TextEncoder().encode(text));
  return {
    response: new Response(body, { headers: { "content-type": "text/event-stream" } }),
    raw,
    say: (event, id) => raw(`${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`),
    end: () => controller?.close(),
    cut: () => controller?.error(new TypeError("network error")),
  };
}

export const problem = (status: number, code: string, headers: Record<string, string> = {}): Response =>
  Response.json({ status, code, detail: `${code}.` }, { status, headers });

export type Reply = Response | "unreachable" | ((request: SeenRequest) => Response | "unreachable");

/** Answers in order; past the end nobody answers. */
export function scriptedFetch(...replies: readonly Reply[]): {
  readonly fetch: typeof fetch;
  readonly seen: readonly SeenRequest[];
} {
  const seen: SeenRequest[] = [];
  const answer = async (input: Parameters<typeof fetch>[0], init: RequestInit = {}): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    const body: unknown = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
    const request = {
      method: init.method ?? "GET",
      path: url.pathname + url.search,
      headers: new Headers(init.headers),
      body,
    };
    seen.push(request);
    const reply = replies[seen.length - 1];
    const told = typeof reply === "function" ? reply(request) : (reply ?? "unreachable");
    init.signal?.throwIfAborted();
    if (told === "unreachable") throw new TypeError("fetch failed");
    return told;
  };
  return { fetch: answer, seen };
}
