const mark = "\n\n-- ";

/** Every answer says whose it is: nobody should take the demo for a language model. */
export const signed = (text: string, modelId: string): string =>
  `${text}${mark}demo/${modelId}, the built-in demo model: a few rules, no language model.`;

export function withoutSignature(text: string): string {
  const end = text.lastIndexOf(`${mark}demo/`);
  return end < 0 ? text : text.slice(0, end);
}
