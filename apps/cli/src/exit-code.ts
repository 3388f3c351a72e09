/** What a shell or a supervisor is told; the numbers of 74 and 75 are those of sysexits.h (I/O error, try again). */
export const exitCode: Readonly<Record<"ok" | "failed" | "usage" | "storeUnusable" | "busy" | "interrupted", number>> =
  Object.freeze({
    ok: 0,
    failed: 1,
    usage: 2,
    storeUnusable: 74,
    busy: 75,
    interrupted: 130,
  });
