/** What stopping a call did, step by step, as data: for the call's result, for logs, for whoever asks why it lives on. */

/** One step of a stop; a receipt has them in the order in which they were taken. */
export type StopStep =
  | {
      readonly step: "term" | "kill";
      /** Processes of the command's own group that got the signal; 1 for the whole group where there is no `/proc`. */
      readonly groupCount: number;
      /** Processes outside that group that got it: jobs with groups of their own, and daemons found by the marker. */
      readonly sweptCount: number;
      /** Those of all found so far that still ran when the step was over. */
      readonly leftCount: number;
    }
  | {
      readonly step: "terminate";
      /** False: the worker's thread is inside something that cannot be interrupted, and goes on. */
      readonly ended: boolean;
    }
  /** Nothing more was tried: what is left goes on without us, and what it says is nobody's answer. */
  | { readonly step: "detach"; readonly processIds: readonly number[] };

/** How a stop went, in few words that do not vary with counts: a loop must see that the same thing happened again. */
export function stopSentence(steps: readonly StopStep[], supported: boolean): string {
  if (!supported) return "Its process group was ended.";
  const survivors = steps.flatMap((step) => (step.step === "detach" ? step.processIds : []));
  if (survivors.length > 0) return `These of its processes could not be ended: ${survivors.join(", ")}.`;
  const remarks = [
    ...(steps.some((step) => step.step === "kill" && step.groupCount + step.sweptCount > 0) ? ["KILL was needed"] : []),
    ...(steps.some((step) => "sweptCount" in step && step.sweptCount > 0) ? ["some had left its process group"] : []),
  ];
  return `Its processes were ended${remarks.length === 0 ? "" : ` (${remarks.join("; ")})`}.`;
}
