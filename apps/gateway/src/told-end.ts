/** What the store says of itself names files of this machine: the log has it, and strangers have its code. */
export const storeRefuses = "The store refuses; the gateway's log says more.";

/** Whether it was the store that made a turn, or a call, end so. */
export const isOfStore = (reason: string | undefined): reason is `STORE_${string}` =>
  reason?.startsWith("STORE_") ?? false;

/** An end as clients are told of it. */
export function toldEnd<End extends { readonly reason?: string; readonly detail?: string }>(end: End): End {
  return isOfStore(end.reason) && end.detail !== undefined ? { ...end, detail: storeRefuses } : end;
}
