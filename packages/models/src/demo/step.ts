export interface ToolRequest {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What the demo model does next: call tools, having said why, or answer. */
export type Step =
  | { readonly kind: "call"; readonly says: string; readonly calls: readonly ToolRequest[] }
  | { readonly kind: "answer"; readonly text: string };

export const answer = (text: string): Step => ({ kind: "answer", text });

const longestShown = 4000;

/** A tool's answer as the demo repeats it: it may be as long as a file. */
export const shortened = (text: string): string =>
  text.length > longestShown
    ? `${text.slice(0, longestShown)}\n… (${text.length - longestShown} characters more)`
    : text;
