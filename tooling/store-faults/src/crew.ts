import { systemHost } from "@turnkeeper/kernel";
import type { Holder, ProcessIdentity, Runner } from "@turnkeeper/state-store";

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    // No such process, since all of them belong to one user.
    return false;
  }
}

/** Who of this process holds or waits for something, and whether anybody else still lives. */
export class Crew {
  readonly #identity: ProcessIdentity;
  readonly #holderIds = new Set<string>();

  constructor(name: string) {
    this.#identity = { instanceId: name, host: "test", bootId: systemHost.clock.bootId, pid: process.pid };
  }

  runner(name: string): Runner {
    return { ...this.#identity, runnerId: `runner-${name}` };
  }

  holder(): Holder {
    const holderId = systemHost.random.id();
    this.#holderIds.add(holderId);
    return { ...this.#identity, holderId };
  }

  dismiss({ holderId }: Holder): void {
    this.#holderIds.delete(holderId);
  }

  /** Whether nobody will ever use this grant again: its process was killed, or its lane gave it up after a failure. */
  isDead({ instanceId, holderId, pid }: Holder): boolean {
    return instanceId === this.#identity.instanceId ? !this.#holderIds.has(holderId) : !isRunning(pid);
  }

  isGone({ instanceId, pid }: Runner): boolean {
    return instanceId !== this.#identity.instanceId && !isRunning(pid);
  }
}
