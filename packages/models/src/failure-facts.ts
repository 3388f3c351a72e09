/** What can be known of a failed call, read from whatever the AI SDK, undici or a server made of it. */

export interface FailureFacts {
  /** HTTP status; 200 when the failure came after the reply had begun. */
  readonly status?: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The `type`, `code` and `param` a provider gave, where they are plain words. */
  readonly tokens: readonly string[];
  /** The provider's own message, unmasked. */
  readonly words?: string;
  /** Code of the operating system, undici or the HTTP parser. */
  readonly systemCode?: string;
  /** Names of the errors along the chain of causes, outermost first. */
  readonly errorNames: readonly string[];
  /** The SDK saw the stream end without the provider's reason for ending. */
  readonly hasNoEnding: boolean;
  /** Media type of a reply that was not what had been asked for. */
  readonly contentType?: string;
  /** Host of a redirect's target, or of the request. */
  readonly host?: string;
  /** Texts of the request, where the error carries them: nothing of them may be repeated. */
  readonly requestTexts: () => readonly unknown[];
}

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

const longestChain = 8;

function parsed(text: unknown): unknown {
  if (typeof text !== "string") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // A body that is no JSON (a proxy's page, an empty body) tells nothing that could be repeated.
    return undefined;
  }
}

interface Complaint {
  readonly words?: string;
  readonly tokens: readonly string[];
}

const plainWord = /^[\w.:[\]-]{1,64}$/;

/** Finds the complaint in the shapes that providers use: `{error: {message, type, code, param}}` and its relatives. */
function complaintOf(payload: unknown): Complaint | undefined {
  if (!isFields(payload)) return undefined;
  const inner = payload["error"] ?? (isFields(payload["response"]) ? payload["response"]["error"] : undefined);
  if (typeof inner === "string") return { words: inner, tokens: [] };
  const fields = isFields(inner) ? inner : payload;
  const words = [fields["message"], fields["detail"]].find((value) => typeof value === "string");
  const tokens = [fields["type"], fields["code"], fields["param"]]
    .filter((value) => typeof value === "string" || typeof value === "number")
    .map(String);
  if (words === undefined && tokens.length === 0) return undefined;
  return {
    ...(words === undefined ? {} : { words }),
    tokens: tokens.filter((token) => plainWord.test(token) && token !== "error"),
  };
}

function hostOf(url: unknown): string | undefined {
  return typeof url === "string" && URL.canParse(url) ? new URL(url).host : undefined;
}

function headersOf(value: unknown): Record<string, string> | undefined {
  if (!isFields(value)) return undefined;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, text]) => (typeof text === "string" ? [[name.toLowerCase(), text]] : [])),
  );
}

function chainOf(error: unknown): Fields[] {
  const chain: Fields[] = [];
  for (let next = error; isFields(next) && chain.length < longestChain && !chain.includes(next); next = next["cause"])
    chain.push(next);
  return chain;
}

const firstOf = <Value>(chain: readonly Fields[], read: (fields: Fields) => Value | undefined): Value | undefined => {
  for (const fields of chain) {
    const value = read(fields);
    if (value !== undefined) return value;
  }
  return undefined;
};

// A JavaScript error's own message is not the provider's: it may hold a header's value, so only payloads are read.
const complaintIn = (fields: Fields): Complaint | undefined =>
  complaintOf(parsed(fields["responseBody"])) ??
  complaintOf(fields["data"]) ??
  (fields instanceof Error ? undefined : complaintOf(fields));

/** Reads an error thrown by a provider's SDK, an `error` part of its stream, or anything else. Never throws. */
export function readFacts(error: unknown): FailureFacts {
  const chain = chainOf(error);
  const status = firstOf(chain, ({ statusCode }) => (typeof statusCode === "number" ? statusCode : undefined));
  const headers = firstOf(chain, ({ responseHeaders }) => headersOf(responseHeaders)) ?? {};
  const complaint = typeof error === "string" ? { words: error, tokens: [] } : firstOf(chain, complaintIn);
  const systemCode = firstOf(chain, ({ code }) =>
    typeof code === "string" && /^[A-Z][A-Z0-9_]+$/.test(code) ? code : undefined,
  );
  const contentType = firstOf(chain, ({ contentType: value }) => (typeof value === "string" ? value : undefined));
  const host = hostOf(headers["location"]) ?? firstOf(chain, ({ url }) => hostOf(url));
  return {
    headers,
    tokens: complaint?.tokens ?? [],
    errorNames: chain.map(({ name }) => (typeof name === "string" ? name : "")),
    hasNoEnding: chain.some(
      ({ name, message }) => name === "AI_InvalidResponseDataError" && /without a finish reason/.test(String(message)),
    ),
    requestTexts: () =>
      chain.flatMap(({ requestBodyValues }) => (isFields(requestBodyValues) ? [requestBodyValues] : [])),
    ...(status === undefined ? {} : { status }),
    ...(complaint?.words === undefined ? {} : { words: complaint.words }),
    ...(systemCode === undefined ? {} : { systemCode }),
    ...(contentType === undefined ? {} : { contentType }),
    ...(host === undefined ? {} : { host }),
  };
}
