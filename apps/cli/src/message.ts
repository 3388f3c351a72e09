import { cliError, systemCodeOf } from "./cli-error.ts";
import type { CommandIo } from "./command-io.ts";

/** The largest message, in bytes of UTF-8: a mebibyte; more would be in the way of every later turn. */
export const messageBytesMax = 1_048_576;

function tooLarge(what: string): Error {
  return cliError(
    "USAGE",
    `${what} is larger than ${messageBytesMax} bytes, the most that is taken. Put it in a file and name the file.`,
  );
}

/** Decodes what is to be sent as it is: text that is silently repaired is not what the user wrote. */
export function decodeMessage(bytes: Uint8Array, what: string): string {
  if (bytes.byteLength > messageBytesMax) throw tooLarge(what);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw cliError(
      "USAGE",
      `${what} is not valid UTF-8 text; nothing was sent. Convert it first, for example with iconv.`,
      error,
    );
  }
}

async function readAll(stdin: AsyncIterable<Buffer>, what: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let byteCount = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    byteCount += chunk.byteLength;
    if (byteCount > messageBytesMax) throw tooLarge(what);
  }
  return Buffer.concat(chunks);
}

/** The message of the command line, else all of stdin without its last line break. Rejects with `USAGE`. */
export async function readMessage(
  io: Pick<CommandIo, "stdin" | "stderr">,
  argument: string | undefined,
): Promise<string> {
  if (argument !== undefined) {
    if (argument.trim() === "")
      throw cliError("USAGE", "The message is empty; say something, or leave it out and write it to stdin.");
    if (Buffer.byteLength(argument) > messageBytesMax) throw tooLarge("The message");
    return argument;
  }
  if (io.stdin.isTTY && io.stderr.isTerminal) io.stderr.line("Write the message, then press Ctrl-D.");
  const what = "The message on stdin";
  let bytes: Buffer;
  try {
    bytes = await readAll(io.stdin, what);
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === "EISDIR" || code === "EAGAIN" || code === "EBADF")
      throw cliError("USAGE", `${what} cannot be read (${code}).`, error);
    throw error;
  }
  const text = decodeMessage(bytes, what).replace(/\r?\n$/, "");
  if (text.trim() === "") throw cliError("USAGE", `${what} is empty; give a message as an argument or on stdin.`);
  return text;
}
