/** One model as it is, which must hold; or with one historical race put back, which must be found. */
export interface Experiment {
  readonly model: "claim" | "lease";
  /** The define that puts the race back; absent: our protocol. */
  readonly race?: string;
  /** The property of `claim` that is checked over infinite runs too; the others hold or fail at a step. */
  readonly isLiveness: boolean;
  /** What is told when the race is found: the assertion that fails, or the cycle in which nothing happens. */
  readonly finds?: string;
}

function race(model: Experiment["model"], name: string, finds: string, isLiveness = false): Experiment {
  return { model, race: name, isLiveness, finds };
}

const cycle = "acceptance cycle";

export const experiments: readonly Experiment[] = [
  { model: "claim", isLiveness: false },
  { model: "claim", isLiveness: true },
  race("claim", "COMPARE_THEN_PUBLISH", "(seen==generation)"),
  race("claim", "COMPARE_BEFORE_WAIT", "(seen==generation)"),
  race("claim", "CONSUME_THEN_PUBLISH", "(seen==generation)"),
  race("claim", "CANCEL_BEFORE_CLAIM", "assertion violated isPublished"),
  race("claim", "CANCEL_WITHOUT_LOOK", "!(isCommitting)"),
  race("claim", "SAY_ON_OBSERVATION", "assertion violated isPublished"),
  race("claim", "WITHDRAW_ON_RESERVE", "assertion violated isSaid"),
  race("claim", "NO_POLL_PHASE", "!(wasEarly)"),
  race("claim", "STOP_AFTER_END", "!(isOver)"),
  race("claim", "WATCH_ENDS_WITH_VETO", cycle, true),
  { model: "lease", isLiveness: false },
  race("lease", "TAKE_ANY", "isCrashed[holder]"),
  race("lease", "SILENCE_IS_DEATH", "isCrashed[holder]"),
  race("lease", "WALL_CLOCK", "isCrashed[holder]"),
  race("lease", "APPEND_UNFENCED", "(mine>=written)"),
  race("lease", "RENEW_UNFENCED", "holder=="),
  race("lease", "RELEASE_UNFENCED", "holder=="),
  race("lease", "TOKEN_REUSED", "(token>granted)"),
  race("lease", "BELIEF_FROM_ANSWER", "(token==mine)"),
  race("lease", "BELIEF_UNASKED", "(token==mine)"),
];

export function nameOf({ model, race: name, isLiveness }: Experiment): string {
  if (name !== undefined) return `${model} ${name}`;
  return isLiveness ? `${model} (liveness)` : model;
}
