import type { Store } from "../store/open.ts";
import type { SharedState } from "../task/shared-state.ts";

/** A store whose users can be cut off from it. */
export interface SeverableStore {
  readonly store: Store;
  /** From now on nothing reaches the store, and no call is answered, those under way included. */
  sever(): void;
  /** Closes the store behind it. */
  close(): Promise<void>;
}

type Call = (...args: unknown[]) => unknown;

/** What a severed store answers where its users do not wait for a promise. */
const answersWhenSevered: Readonly<Record<string, Call>> = {
  mayHaveLive: () => false,
  onChange: () => () => {},
  onWork: () => () => {},
  keepLeases: () => () => {},
  watchClosely: () => {},
};

/**
 * Wraps a store so that its process can seem to crash while it goes on: a test that kills a server in its own process
 * must see no write of that server afterwards.
 */
export function makeSeverable(store: Store): SeverableStore {
  let isSevered = false;
  const forever = () => new Promise<never>(() => {});
  const wrap = <T extends object>(target: T, replaced: Partial<T> = {}): T =>
    new Proxy(target, {
      get(_, key) {
        if (key in replaced) return replaced[key as keyof T];
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== "function" || key === "now")
          return typeof value === "function" ? value.bind(target) : value;
        return (...args: unknown[]) => {
          if (isSevered) return (answersWhenSevered[String(key)] ?? forever)(...args);
          const result: unknown = (value as Call).apply(target, args);
          return result instanceof Promise ? result.finally(() => (isSevered ? forever() : undefined)) : result;
        };
      },
    });
  const shared: SharedState = wrap(store.shared, {
    sessions: wrap(store.shared.sessions),
    keys: wrap(store.shared.keys),
  });
  const sever = () => {
    isSevered = true;
  };
  return { store: wrap(store, { shared }), sever, close: () => store.close() };
}
