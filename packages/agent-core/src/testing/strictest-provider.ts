import type { LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";

/**
 * What the strictest of all providers would refuse of a request, one line for each complaint; none means acceptable to
 * every provider we know. System words come first and alone; the user begins; roles alternate; nothing is empty; every
 * call has exactly one result in the message after it, and no result lacks its call; arguments are an object; somebody
 * else than the model spoke last.
 */
export function strictestProvider(prompt: LanguageModelV3Prompt): readonly string[] {
  const spoken = prompt.filter((message) => message.role !== "system");
  return [
    ...systemComplaints(prompt),
    ...(spoken[0]?.role === "user" ? [] : ["the conversation does not begin with the user"]),
    ...(spoken.at(-1)?.role === "assistant" ? ["the model is asked to go on with its own words"] : []),
    ...spoken.flatMap((message, index) => messageComplaints(message, spoken[index - 1], spoken[index + 1], index)),
  ];
}

function systemComplaints(prompt: LanguageModelV3Prompt): readonly string[] {
  return prompt.flatMap((message, index) => {
    if (message.role !== "system") return [];
    if (index > 0) return [`system words at ${index}`];
    return message.content.trim() === "" ? ["empty system words"] : [];
  });
}

function messageComplaints(
  message: LanguageModelV3Message,
  before: LanguageModelV3Message | undefined,
  after: LanguageModelV3Message | undefined,
  index: number,
): readonly string[] {
  const complaints: string[] = [];
  const where = `${message.role} message ${index}`;
  if (message.content.length === 0) complaints.push(`${where} is empty`);
  if (before?.role === message.role) complaints.push(`${where} follows one of the same role`);
  if (message.role === "tool" && before?.role !== "assistant") complaints.push(`${where} follows no answer`);
  if (message.role === "assistant") complaints.push(...assistantComplaints(message, after, where));
  if (message.role === "tool") {
    const called = new Set(before ? callIdsOf(before) : []);
    for (const id of resultIdsOf(message))
      if (!called.has(id)) complaints.push(`${where}: result ${id} lacks its call`);
  }
  for (const part of message.content) {
    if (typeof part === "string") continue;
    if (part.type === "text" && part.text.trim() === "") complaints.push(`${where} holds an empty text`);
    if (part.type === "tool-result" && "value" in part.output && part.output.value === "")
      complaints.push(`${where} holds an empty result`);
  }
  return complaints;
}

function assistantComplaints(
  message: Extract<LanguageModelV3Message, { role: "assistant" }>,
  after: LanguageModelV3Message | undefined,
  where: string,
): readonly string[] {
  const complaints: string[] = [];
  const calls = callIdsOf(message);
  const results = after?.role === "tool" ? resultIdsOf(after) : [];
  if (message.content.every((part) => part.type === "reasoning")) complaints.push(`${where} holds only reasoning`);
  if (new Set(calls).size < calls.length) complaints.push(`${where} repeats a call id`);
  for (const id of calls) {
    const count = results.filter((one) => one === id).length;
    if (count !== 1) complaints.push(`${where}: call ${id} has ${count} results`);
  }
  for (const part of message.content) {
    if (part.type !== "tool-call") continue;
    const { input, toolName } = part;
    if (typeof input !== "object" || input === null || Array.isArray(input))
      complaints.push(`${where}: the arguments of ${toolName} are no object`);
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(toolName)) complaints.push(`${where}: ${toolName} is no tool name`);
  }
  return complaints;
}

/** The calls that somebody else than the provider runs. */
function callIdsOf(message: LanguageModelV3Message): readonly string[] {
  if (message.role !== "assistant") return [];
  return message.content.flatMap((part) =>
    part.type === "tool-call" && part.providerExecuted !== true ? [part.toolCallId] : [],
  );
}

function resultIdsOf(message: LanguageModelV3Message): readonly string[] {
  if (message.role !== "tool") return [];
  return message.content.flatMap((part) => (part.type === "tool-result" ? [part.toolCallId] : []));
}
