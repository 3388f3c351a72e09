/** No file can be opened any more. Said by what is loaded with the program: nothing else can be, either. */
export function isExhaustion(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}

export const exhaustionText =
  "Could not go on: this process may open no more files. What is stored is safe; raise the limit (ulimit -n 1024) and repeat.";
